// What the classifiers and regressors of ai.onnx.ml share where the compiler spells them out.
#ifndef FIRN_KERNELS_PREDICTOREXPANSION_H
#define FIRN_KERNELS_PREDICTOREXPANSION_H

#include "runtime/kernels/Compose.h"
#include "runtime/kernels/Predictor.h"

namespace firn::kernels {

/// Rows of float scores after the transform; fails for those that have no operation.
Composer::Value transformed(Composer &c, PostTransform transform, Composer::Value scores);
/// The labels at int64 positions [N].
Composer::Value labelled(Composer &c, const Labels &labels, Composer::Value positions);
/// The position of the greatest score of each row.
Composer::Value bestColumn(Composer &c, Composer::Value scores);
/// Numbers as a constant of float.
Composer::Value floatConstant(Composer &c, const double *numbers, int64_t rows, int64_t columns);

} // namespace firn::kernels
#endif
