// Image: bytes and symbolic pointers become one LLVM global.
#include "compiler/artifact/Image.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Module.h"

namespace firn {

int64_t Image::append(const void *from, size_t size, size_t alignment) {
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
  int64_t at = bytes.size();
  const char *begin = static_cast<const char *>(from);
  if (size)
    bytes.insert(bytes.end(), begin, begin + size);
  return at;
}

int64_t Image::text(llvm::StringRef text) {
  auto [at, isNew] = texts.try_emplace(text.str(), 0);
  if (isNew)
    at->second = append(at->first.c_str(), at->first.size() + 1, 1);
  return at->second;
}

void Image::pointTo(int64_t at, int64_t target) {
  if (target >= 0)
    pointers[at] = {target, ""};
}
void Image::pointTo(int64_t at, llvm::StringRef symbol) { pointers[at] = {0, symbol.str()}; }

void Image::emit(llvm::Module &module, llvm::StringRef name) const {
  llvm::LLVMContext &context = module.getContext();
  llvm::Type *byte = llvm::Type::getInt8Ty(context), *pointer = llvm::PointerType::getUnqual(context);
  std::vector<llvm::Type *> types;
  int64_t from = 0;
  auto gap = [&](int64_t to) {
    if (to > from)
      types.push_back(llvm::ArrayType::get(byte, to - from));
  };
  for (const auto &[at, target] : pointers) {
    gap(at);
    types.push_back(pointer);
    from = at + 8;
  }
  gap(bytes.size());
  auto *type = llvm::StructType::get(context, types, /*isPacked=*/true);
  auto *global =
      new llvm::GlobalVariable(module, type, /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage, nullptr, name);
  global->setAlignment(llvm::Align(64));
  global->setVisibility(llvm::GlobalValue::DefaultVisibility);

  std::vector<llvm::Constant *> parts;
  from = 0;
  auto fill = [&](int64_t to) {
    if (to > from)
      parts.push_back(
          llvm::ConstantDataArray::getString(context, llvm::StringRef(bytes.data() + from, to - from), false));
  };
  for (const auto &[at, target] : pointers) {
    fill(at);
    if (target.symbol.empty()) {
      auto *offset = llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), target.target);
      parts.push_back(llvm::ConstantExpr::getGetElementPtr(byte, global, offset));
    } else {
      llvm::GlobalVariable *symbol = module.getGlobalVariable(target.symbol);
      if (!symbol) {
        symbol =
            new llvm::GlobalVariable(module, byte, true, llvm::GlobalValue::ExternalLinkage, nullptr, target.symbol);
        symbol->setVisibility(llvm::GlobalValue::HiddenVisibility);
      }
      parts.push_back(symbol);
    }
    from = at + 8;
  }
  fill(bytes.size());
  global->setInitializer(llvm::ConstantStruct::get(type, parts));
}

} // namespace firn
