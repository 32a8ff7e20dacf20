// A body of a caller on its way into the storage.
#pragma once

#include <cstdint>
#include <string_view>

#include "bodies/body_files.h"
#include "writes/step.h"
#include "writes/writer.h"

namespace jobq::sqlite {

/// A body, and its file if the body is large. The caller's thread owns the object; the thread of the step uses the
/// object inside the step, while the caller waits. The bytes, the files and the writer outlive the object.
class NewBody {
 public:
  /// Writes and syncs the file of a large body. Throws StorageError, and leaves no file then.
  NewBody(BodyFiles& files, Writer& writer, std::string_view bytes);
  /// Deletes the file unless a step was committed that named the file.
  ~NewBody();
  NewBody(const NewBody&) = delete;
  NewBody& operator=(const NewBody&) = delete;

  /// Begins a step, which may be repeated: the file is not named yet.
  void beginStep() noexcept { named_ = false; }
  /// Inserts the row of the file, with one owner, and returns the number of the file; 0 if the body belongs in its row.
  std::int64_t nameIn(Step& step);
  /// Notes the commit of the last step.
  void noteCommit() noexcept { committed_ = true; }

  /// Returns the bytes of the column of the body: none if the body has a file.
  std::string_view inRow() const noexcept { return file_.isFile() ? std::string_view() : bytes_; }
  const BodyFile& file() const noexcept { return file_; }

 private:
  BodyFiles& files_;
  Writer& writer_;
  const std::string_view bytes_;
  BodyFile file_;
  bool named_ = false;
  bool committed_ = false;
};

}  // namespace jobq::sqlite
