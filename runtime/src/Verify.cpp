// Is this file what the compiler wrote, and does it compute here what the model computes?
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/src/Error.h"
#include "runtime/src/Hash.h"
#include "runtime/src/Model.h"
#include "runtime/src/Values.h"

namespace firn::runtime {
namespace {

firn_status checkDigest(const firn_model &model, firn_error *error) {
  Sha256 hash;
  if (model.file < 0) { // linked in: the digest is that of the weights
    uint8_t weights[32];
    hash.update(model.weights, size_t(model.footer.weights_size));
    hash.finish(weights);
    if (memcmp(weights, model.footer.digest, sizeof weights) != 0)
      return fail(error, FIRN_DIFFERS, "the weights are not those that the compiler wrote");
    return FIRN_OK;
  }
  constexpr size_t chunkBytes = 1 << 16;
  auto *chunk = static_cast<char *>(malloc(chunkBytes));
  if (!chunk)
    return fail(error, FIRN_NO_MEMORY, "no memory to read the file");
  firn_status status = FIRN_OK;
  uint64_t end = model.footer.file_size - sizeof(firn_footer);
  for (uint64_t at = 0; at < end && status == FIRN_OK;) {
    size_t bytes = end - at < chunkBytes ? size_t(end - at) : chunkBytes;
    if (!readAt(model.file, chunk, bytes, at))
      status =
          fail(error, FIRN_UNREADABLE, "the file cannot be read at byte %llu", static_cast<unsigned long long>(at));
    hash.update(chunk, bytes);
    at += bytes;
  }
  free(chunk);
  FIRN_CHECK_STATUS(status);
  uint8_t digest[32];
  hash.finish(digest);
  if (memcmp(digest, model.footer.digest, sizeof digest) != 0)
    return fail(error, FIRN_DIFFERS, "the file is damaged: its SHA-256 is not the one that the compiler stored");
  return FIRN_OK;
}

double halfToDouble(uint32_t bits) {
  uint32_t exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31)
    return fraction ? double(NAN) : sign * double(INFINITY);
  return sign * (exponent ? ldexp(1024 + fraction, int(exponent) - 25) : ldexp(fraction, -24));
}

// Element `i` of a real floating-point tensor that the proof compares with a tolerance.
bool readReal(const char *data, int32_t dtype, int64_t i, double &value) {
  float single;
  uint16_t half;
  uint32_t wide;
  switch (dtype) {
  case FIRN_F32:
    memcpy(&single, data + 4 * i, 4);
    value = double(single);
    return true;
  case FIRN_F64:
    memcpy(&value, data + 8 * i, 8);
    return true;
  case FIRN_F16:
    memcpy(&half, data + 2 * i, 2);
    value = halfToDouble(half);
    return true;
  case FIRN_BF16:
    memcpy(&half, data + 2 * i, 2);
    wide = uint32_t(half) << 16;
    memcpy(&single, &wide, 4);
    value = double(single);
    return true;
  }
  return false;
}

bool isClose(double got, double wanted, double rtol, double atol) {
  if (got == wanted || (isnan(got) && isnan(wanted)))
    return true;
  return isfinite(got) && isfinite(wanted) && fabs(got - wanted) <= atol + rtol * fabs(wanted);
}

firn_status compareReals(const firn_model &model, const char *name, const firn_tensor &got, const char *wanted,
                         int64_t count, firn_error *error) {
  int64_t different = 0, worst = 0;
  double worstError = -1, worstGot = 0, worstWanted = 0;
  for (int64_t i = 0; i < count; ++i) {
    double a = 0, b = 0;
    readReal(static_cast<const char *>(got.data), got.dtype, i, a);
    readReal(wanted, got.dtype, i, b);
    if (isClose(a, b, model.desc->proof_rtol, model.desc->proof_atol))
      continue;
    ++different;
    double distance = isfinite(a) && isfinite(b) ? fabs(a - b) : double(INFINITY);
    if (distance > worstError)
      worst = i, worstError = distance, worstGot = a, worstWanted = b;
  }
  if (different == 0)
    return FIRN_OK;
  return fail(error, FIRN_DIFFERS,
              "the proof's output '%s' differs in %lld of %lld elements; worst at %lld: expected %.9g, got %.9g", name,
              static_cast<long long>(different), static_cast<long long>(count), static_cast<long long>(worst),
              worstWanted, worstGot);
}

firn_status compareBytes(const char *name, const firn_tensor &got, const char *wanted, int64_t count,
                         firn_error *error) {
  const char *bytes = static_cast<const char *>(got.data);
  int64_t size = countBytes(got.dtype, count), i = 0;
  while (i < size && bytes[i] == wanted[i])
    ++i;
  if (i == size)
    return FIRN_OK;
  int64_t bits = firn_dtype_bits(got.dtype);
  return fail(error, FIRN_DIFFERS, "the proof's output '%s' differs, first at element %lld of %lld", name,
              static_cast<long long>(i * 8 / bits), static_cast<long long>(count));
}

firn_status compareStrings(const firn_model &model, const char *name, const firn_tensor &got, int64_t offset,
                           int64_t count, firn_error *error) {
  const auto *strings = static_cast<const firn_text *>(got.data);
  for (int64_t i = 0; i < count; ++i) {
    firn_string wanted;
    if (!resolveStrings(model, offset + 16 * i, 1, &wanted))
      return fail(error, FIRN_BAD_MODEL, "a string of the proof lies outside of the weights");
    if (strings[i].length != wanted.length ||
        (wanted.length && memcmp(strings[i].data, wanted.data, size_t(wanted.length)) != 0))
      return fail(error, FIRN_DIFFERS, "the proof's output '%s' differs, first at element %lld of %lld", name,
                  static_cast<long long>(i), static_cast<long long>(count));
  }
  return FIRN_OK;
}

firn_status compareOutput(const firn_model &model, int32_t index, const firn_tensor &got, firn_error *error) {
  const firn_proof_tensor &proof = model.desc->proof[model.desc->input_count + index];
  const char *name = model.desc->outputs[index].name;
  if (proof.view.rank < 0)
    return FIRN_OK;
  bool hasShape = proof.view.dtype == got.dtype && proof.view.rank == got.rank;
  for (int32_t d = 0; hasShape && d < got.rank; ++d)
    hasShape = proof.view.dims[d] == got.dims[d];
  if (!hasShape) {
    firn_tensor wanted{};
    wanted.dtype = proof.view.dtype;
    wanted.rank = proof.view.rank;
    memcpy(wanted.dims, proof.view.dims, sizeof wanted.dims);
    char wantedText[256], gotText[256];
    return fail(error, FIRN_DIFFERS, "the proof's output '%s' should be %s, got %s", name,
                tensorText(wanted, wantedText, sizeof wantedText), tensorText(got, gotText, sizeof gotText));
  }
  int64_t count = countElements(got.dims, got.rank);
  const char *wanted = model.weights + proof.offset;
  double probe;
  if (got.dtype == FIRN_STRING)
    return compareStrings(model, name, got, proof.offset, count, error);
  if (count == 0)
    return FIRN_OK;
  return readReal(wanted, got.dtype, 0, probe) ? compareReals(model, name, got, wanted, count, error)
                                               : compareBytes(name, got, wanted, count, error);
}

// The proof's input `index`; strings get memory of their own, to be freed.
firn_status proofInput(const firn_model &model, int32_t index, firn_tensor &input, void *&strings, firn_error *error) {
  const firn_proof_tensor &proof = model.desc->proof[index];
  if (proof.view.rank < 0)
    return FIRN_OK;
  input.dtype = proof.view.dtype;
  input.rank = proof.view.rank;
  memcpy(input.dims, proof.view.dims, sizeof input.dims);
  input.bytes = firn_tensor_bytes(&input);
  input.data = const_cast<char *>(model.weights) + proof.offset;
  if (proof.view.dtype != FIRN_STRING)
    return FIRN_OK;
  strings = malloc(size_t(input.bytes) + 1);
  if (!strings)
    return fail(error, FIRN_NO_MEMORY, "no memory for the proof's strings");
  input.data = strings;
  if (!resolveStrings(model, proof.offset, input.bytes / 16, static_cast<firn_string *>(strings)))
    return fail(error, FIRN_BAD_MODEL, "a string of the proof lies outside of the weights");
  return FIRN_OK;
}

firn_status replayProof(const firn_model &model, int32_t threads, firn_tensor *tensors, void **strings,
                        firn_error *error) {
  const firn_model_desc &desc = *model.desc;
  for (int32_t i = 0; i < desc.input_count; ++i)
    FIRN_CHECK_STATUS(proofInput(model, i, tensors[i], strings[i], error));
  firn_session_options options{};
  options.struct_size = sizeof options;
  options.threads = threads;
  firn_session *session = nullptr;
  FIRN_CHECK_STATUS(firn_session_create(&model, &options, &session, error));
  firn_tensor *outputs = tensors + desc.input_count;
  firn_status status = firn_session_run(session, tensors, outputs);
  if (status != FIRN_OK)
    fail(error, status, "the proof does not run: %s", firn_session_message(session));
  for (int32_t i = 0; i < desc.output_count && status == FIRN_OK; ++i)
    status = compareOutput(model, i, outputs[i], error);
  firn_session_destroy(session);
  return status;
}

} // namespace
} // namespace firn::runtime

using namespace firn::runtime;

extern "C" firn_status firn_model_verify(const firn_model *model, uint32_t what, int32_t threads, firn_error *error) {
  succeed(error);
  if (!model)
    return fail(error, FIRN_BAD_ARGUMENT, "firn_model_verify got NULL");
  if (what & FIRN_VERIFY_DIGEST)
    FIRN_CHECK_STATUS(checkDigest(*model, error));
  if (!(what & FIRN_VERIFY_PROOF))
    return FIRN_OK;
  if (model->desc->proof_count == 0)
    return fail(error, FIRN_NO_PROOF, "the model was compiled without --proof");
  size_t count = size_t(model->desc->proof_count);
  auto *tensors = static_cast<firn_tensor *>(calloc(count, sizeof(firn_tensor)));
  auto **strings = static_cast<void **>(calloc(count, sizeof(void *)));
  firn_status status = tensors && strings ? replayProof(*model, threads, tensors, strings, error)
                                          : fail(error, FIRN_NO_MEMORY, "no memory for the proof");
  for (size_t i = 0; strings && i < count; ++i)
    free(strings[i]);
  free(strings);
  free(tensors);
  return status;
}
