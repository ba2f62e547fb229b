#include "checkpoint/tensor_file_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/check.h"
#include "base/checked_math.h"
#include "checkpoint/printable.h"
#include "formats/format_info.h"

namespace tessera {
namespace {

Failure system_error(const std::string& path, const char* action) {
  const int error = errno;
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return fail(full ? ErrorCode::kResourceLimit : ErrorCode::kIo, "{}: cannot {}: {}", path, action,
              std::strerror(error));
}

struct TemporaryFile {
  std::string path;
  int descriptor = -1;
};

// A new file beside `path`; the name is free because creating an existing one fails.
TemporaryFile create_temporary(const std::string& path) {
  constexpr int kAttempts = 100;
  TemporaryFile file;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    file.path = fmt::format("{}.part-{}-{}", path, ::getpid(), attempt);
    file.descriptor = ::open(file.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file.descriptor >= 0 || errno != EEXIST) break;
  }
  return file;
}

}  // namespace

Result<std::unique_ptr<TensorFileWriter>> TensorFileWriter::create(std::string path,
                                                                   std::span<const std::byte> header,
                                                                   std::vector<Region> regions,
                                                                   uint64_t size) {
  std::unique_ptr<TensorFileWriter> writer(new TensorFileWriter());
  writer->path_ = std::move(path);
  writer->regions_ = std::move(regions);
  TemporaryFile temporary = create_temporary(writer->path_);
  if (temporary.descriptor < 0) return system_error(writer->path_, "create a file beside it");
  writer->descriptor_ = temporary.descriptor;
  writer->temporary_path_ = std::move(temporary.path);
  if (size > static_cast<uint64_t>(INT64_MAX) ||
      ::ftruncate(writer->descriptor_, static_cast<off_t>(size)) != 0)
    return system_error(writer->temporary_path_, "set its size");
  TESSERA_TRY_STATUS(writer->write_at(0, header));
  return writer;
}

TensorFileWriter::~TensorFileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
}

Status TensorFileWriter::write(size_t tensor, uint64_t first, std::span<const std::byte> bytes) {
  CHECK(tensor < regions_.size(), "tensor {} of {}", tensor, regions_.size());
  const Region& region = regions_[tensor];
  CHECK(range_fits(first, bytes.size(), region.bytes), "bytes {} + {} of {}", first, bytes.size(),
        region.bytes);
  TESSERA_TRY_STATUS(write_at(region.offset + first, bytes));
  written_ += bytes.size();
  return {};
}

Status TensorFileWriter::write_at(uint64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0) {
      if (errno == EINTR) continue;
      return system_error(path_, "write");
    }
    offset += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

Status TensorFileWriter::finish() {
  uint64_t expected = 0;
  for (const Region& region : regions_) expected += region.bytes;
  CHECK(written_ == expected, "{} of {} bytes were written", written_.load(), expected);
  if (::fsync(descriptor_) != 0) return system_error(path_, "write");
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) return system_error(path_, "write");
  if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) return system_error(path_, "replace");
  temporary_path_.clear();
  // The rename lasts once the folder is synced; a file system that cannot do that has renamed all the same.
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    (void)::fsync(descriptor);
    ::close(descriptor);
  }
  return {};
}

Result<uint64_t> declared_bytes(const TensorDeclaration& tensor) {
  const std::string name = printable(tensor.name);
  if (tensor.name.empty())
    return fail(ErrorCode::kInvalidArgument, "a tensor without a name cannot be written");
  const int64_t block = format_block(tensor.format);
  if (tensor.shape.columns() % block != 0)
    return fail(ErrorCode::kInvalidArgument,
                "tensor {}: expected rows of a multiple of {} values for {}, found shape {}", name, block,
                format_name(tensor.format), tensor.shape.to_string());
  uint64_t elements = 1;
  for (const int64_t dim : tensor.shape.dims()) {
    CHECK(dim >= 0, "tensor {}: shape {}", name, tensor.shape.to_string());
    const auto product = checked_multiply(elements, static_cast<uint64_t>(dim));
    if (!product || *product > static_cast<uint64_t>(INT64_MAX) / 8)
      return fail(ErrorCode::kInvalidArgument, "tensor {}: shape {} overflows", name,
                  tensor.shape.to_string());
    elements = *product;
  }
  return elements == 0 ? 0
                       : static_cast<uint64_t>(tensor.shape.rows() *
                                               format_row_bytes(tensor.format, tensor.shape.columns()));
}

}  // namespace tessera
