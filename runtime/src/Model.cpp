#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runtime/src/Model.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/src/Error.h"
#include "runtime/src/Lists.h"
#include "runtime/src/Machine.h"
#include "runtime/src/Variants.h"

namespace firn::runtime {

namespace {

firn_status mapWeights(firn_model &model, const char *name, firn_error *error) {
  if (model.footer.weights_size == 0) {
    model.weights = reinterpret_cast<const char *>(model.desc); // never read
    return FIRN_OK;
  }
  // The file's alignment is that of the target; this machine may have larger pages.
  uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
  uint64_t begin = model.footer.weights_offset / page * page;
  model.mappingBytes = size_t(model.footer.weights_offset - begin + model.footer.weights_size);
  void *mapping = mmap(nullptr, model.mappingBytes, PROT_READ, MAP_SHARED, model.file, off_t(begin));
  if (mapping == MAP_FAILED)
    return fail(error, FIRN_UNREADABLE, "%s: its %llu bytes of weights cannot be mapped: %s", name,
                static_cast<unsigned long long>(model.footer.weights_size), strerror(errno));
  model.mapping = static_cast<char *>(mapping);
  model.weights = model.mapping + (model.footer.weights_offset - begin);
  return FIRN_OK;
}

firn_status openFile(firn_model &model, const char *path, firn_error *error) {
  const char *name = path ? path : "model in memory";
  FIRN_CHECK_STATUS(readFooter(model.file, name, model.footer, error));
  if (model.purpose == LoadFor::Running)
    FIRN_CHECK_STATUS(checkMachine(model.footer, name, error));
  FIRN_CHECK_STATUS(loadImage(model.file, name, model.footer, model.purpose, model.image, model.desc, error));
  FIRN_CHECK_STATUS(mapWeights(model, name, error));
  FIRN_CHECK_STATUS(validateModel(model, name, error));
  return openVariants(model, name, error);
}

// Takes `file`, which is closed with the model.
firn_status openModel(int file, const char *path, LoadFor purpose, firn_model **result, firn_error *error) {
  auto *model = static_cast<firn_model *>(calloc(1, sizeof(firn_model)));
  if (!model) {
    close(file);
    return fail(error, FIRN_NO_MEMORY, "no memory for a model");
  }
  model->file = file;
  model->purpose = purpose;
  firn_status status = openFile(*model, path, error);
  if (status == FIRN_OK)
    *result = model;
  else
    firn_model_close(model);
  return status;
}

firn_status openPath(const char *path, LoadFor purpose, firn_model **model, firn_error *error) {
  succeed(error);
  if (!path || !model)
    return fail(error, FIRN_BAD_ARGUMENT, "firn_model_open got NULL");
  *model = nullptr;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return fail(error, FIRN_UNREADABLE, "%s: cannot be opened: %s", path, strerror(errno));
  return openModel(file, path, purpose, model, error);
}

// The footer that a file of this model would have, as far as the program's image can say.
void describeLinked(const firn_static_model &linked, firn_footer &footer) {
  memcpy(footer.magic, FIRN_MAGIC, sizeof footer.magic);
  footer.abi_version = FIRN_ABI_VERSION;
  footer.footer_size = sizeof footer;
  footer.machine = linked.machine;
  footer.cpu_features = linked.cpu_features;
  footer.weights_size = linked.weights_bytes;
  memcpy(footer.digest, linked.digest, sizeof footer.digest);
}

firn_status openLinked(firn_model &model, const firn_static_model &linked, firn_error *error) {
  const char *name = "linked model";
  describeLinked(linked, model.footer);
  FIRN_CHECK_STATUS(checkMachine(model.footer, name, error));
  if (!findProgramImage(linked.tables, model.image))
    return fail(error, FIRN_BAD_MODEL, "%s: its tables lie in no loaded program or library", name);
  model.desc = linked.tables;
  model.weights = static_cast<const char *>(linked.weights);
  return validateModel(model, name, error);
}

void appendDims(char *text, size_t capacity, const int64_t *dims, int32_t rank) {
  for (int32_t d = 0; d < rank && d < FIRN_TENSOR_MAX_RANK; ++d)
    appendText(text, capacity, "%s%lld", d ? "," : "", static_cast<long long>(dims[d]));
}

} // namespace

void releaseTables(firn_model &model) {
  if (model.strings)
    for (int32_t i = 0; i < model.desc->buffer_count; ++i)
      free(model.strings[i]);
  free(model.tables);
}

const char *portText(const firn_model &model, const firn_port &port, char *text, size_t capacity) {
  if (port.buffer >= 0 && isList(model.desc->buffers[port.buffer]))
    return formText(model.desc->buffers[port.buffer].form, port.dtype, text, capacity);
  text[0] = 0;
  appendText(text, capacity, "%s[", firn_dtype_name(port.dtype));
  for (int32_t d = 0; d < port.rank; ++d) {
    appendText(text, capacity, "%s", d ? "," : "");
    if (model.isConstant[port.dims[d]])
      appendText(text, capacity, "%lld", static_cast<long long>(model.constants[port.dims[d]]));
    else
      appendText(text, capacity, "%s", port.symbols && port.symbols[d] ? port.symbols[d] : "?");
  }
  appendText(text, capacity, "]");
  return text;
}

const char *tensorText(const firn_tensor &tensor, char *text, size_t capacity) {
  text[0] = 0;
  appendText(text, capacity, "%s[", firn_dtype_name(tensor.dtype));
  appendDims(text, capacity, tensor.dims, tensor.rank);
  appendText(text, capacity, "]");
  return text;
}

} // namespace firn::runtime

using namespace firn::runtime;

extern "C" {

firn_status firn_model_open(const char *path, firn_model **model, firn_error *error) {
  return openPath(path, LoadFor::Running, model, error);
}

firn_status firn_model_open_to_read(const char *path, firn_model **model, firn_error *error) {
  return openPath(path, LoadFor::Reading, model, error);
}

firn_status firn_model_open_memory(const void *data, uint64_t bytes, firn_model **model, firn_error *error) {
  succeed(error);
  if (!data || !model)
    return fail(error, FIRN_BAD_ARGUMENT, "firn_model_open_memory got NULL");
  *model = nullptr;
  int file = memfd_create("firn-model", MFD_CLOEXEC);
  if (file < 0)
    return fail(error, FIRN_UNREADABLE, "the system refused a file in memory: %s", strerror(errno));
  const char *p = static_cast<const char *>(data);
  for (uint64_t done = 0; done < bytes;) {
    ssize_t wrote = write(file, p + done, size_t(bytes - done));
    if (wrote < 0 && errno == EINTR)
      continue;
    if (wrote <= 0) {
      close(file);
      return fail(error, FIRN_NO_MEMORY, "no memory for a copy of %llu bytes", static_cast<unsigned long long>(bytes));
    }
    done += uint64_t(wrote);
  }
  return openModel(file, nullptr, LoadFor::Running, model, error);
}

firn_status firn_model_open_static(const firn_static_model *linked, firn_model **model, firn_error *error) {
  succeed(error);
  if (!linked || !model || !linked->tables || !linked->weights || linked->struct_size < sizeof *linked)
    return fail(error, FIRN_BAD_ARGUMENT, "firn_model_open_static got NULL or a struct of another size");
  *model = nullptr;
  if (reinterpret_cast<uintptr_t>(linked->weights) % FIRN_BUFFER_ALIGNMENT != 0)
    return fail(error, FIRN_BAD_MODEL, "linked model: its weights are not 64-byte aligned");
  auto *opened = static_cast<firn_model *>(calloc(1, sizeof(firn_model)));
  if (!opened)
    return fail(error, FIRN_NO_MEMORY, "no memory for a model");
  opened->file = -1;
  firn_status status = openLinked(*opened, *linked, error);
  if (status == FIRN_OK)
    *model = opened;
  else
    firn_model_close(opened);
  return status;
}

void firn_model_close(firn_model *model) {
  if (!model)
    return;
  closeVariants(*model);
  releaseTables(*model);
  unloadImage(model->image);
  if (model->mapping)
    munmap(model->mapping, model->mappingBytes);
  if (model->file >= 0)
    close(model->file);
  free(model);
}

} // extern "C"
