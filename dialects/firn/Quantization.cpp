// Inference of quantisation.
#include "dialects/firn/Inference.h"
#include "runtime/abi/dtype.h"

using namespace mlir;

namespace firn {

void inferQuantize(Inference &inference) {
  MLIRContext *context = inference.operation()->getContext();
  Type type = inference.elementType(2);
  int64_t dtype = inference.intAttribute("output_dtype", 0);
  if (!inference.has(2))
    type = elementTypeOf(context, dtype ? int32_t(dtype) : FIRN_U8);
  else if (type && dtype && type != elementTypeOf(context, int32_t(dtype)))
    inference.error("expected output_dtype to be the zero point's type " + elementTypeText(type));
  inference.result(0, type, inference.dims(0));
}

void inferDequantize(Inference &inference) {
  int64_t dtype = inference.intAttribute("output_dtype", 0);
  Type type = dtype ? elementTypeOf(inference.operation()->getContext(), int32_t(dtype)) : inference.elementType(1);
  inference.result(0, type, inference.dims(0));
}

void inferDynamicQuantize(Inference &inference) {
  MLIRContext *context = inference.operation()->getContext();
  inference.result(0, elementTypeOf(context, FIRN_U8), inference.dims(0));
  inference.result(1, Float32Type::get(context), Inference::Dims{});
  inference.result(2, elementTypeOf(context, FIRN_U8), Inference::Dims{});
}

} // namespace firn
