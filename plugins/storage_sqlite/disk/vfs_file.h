// A file beside the database, opened through the file layer (sqlite3_vfs) of SQLite: a layer that tests put beneath
// SQLite sees these files too.
#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace jobq::sqlite {

/// Bytes in one call of the layer. The layer of the system takes less than 128 KB at once.
inline constexpr std::size_t kFileStep = 64UL << 10;

/// Owns an open file. Used by one thread at a time. The methods return SQLite's result codes and throw no exception.
class VfsFile {
 public:
  /// Holds no file before create() or openToRead(). `vfs` outlives the object.
  explicit VfsFile(sqlite3_vfs* vfs) noexcept : vfs_(vfs) {}
  /// Closes the file.
  ~VfsFile();
  VfsFile(const VfsFile&) = delete;
  VfsFile& operator=(const VfsFile&) = delete;

  /// Creates `path` with the mode of the existing file `modeOf`. Fails if `path` exists. The first sync() then syncs
  /// the entry in the folder too.
  int create(const std::filesystem::path& path, const std::filesystem::path& modeOf);
  int openToRead(const std::filesystem::path& path);

  /// Writes `bytes` from the offset `offset` on.
  int write(std::string_view bytes, std::uint64_t offset);
  int sync();
  /// Sets `bytes` to the size of the file.
  int readSize(std::uint64_t& bytes);
  /// Fills `buffer` with the bytes at `offset`. A file that ends before is SQLITE_IOERR_SHORT_READ.
  int read(std::span<char> buffer, std::uint64_t offset);

 private:
  int open(const std::filesystem::path& path, const char* modeOf, int flags);
  sqlite3_file* file() noexcept { return reinterpret_cast<sqlite3_file*>(memory_.get()); }

  sqlite3_vfs* vfs_;
  const char* name_ = nullptr;  // of sqlite3_create_filename(); the layer refers to the name until the file is closed
  std::unique_ptr<std::max_align_t[]> memory_;  // of the layer, which sets a sqlite3_file at its begin
};

}  // namespace jobq::sqlite
