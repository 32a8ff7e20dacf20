#include "disk/log_writes.h"

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "jobq/error.h"
#include "jobq/mutex.h"

namespace jobq::sqlite {
namespace {

/// Format: https://www.sqlite.org/fileformat2.html, "WAL File Format". The second word of a frame's head is not 0 if
/// the frame ends a transaction.
constexpr std::size_t kFrameHeadBytes = 24;
constexpr std::size_t kEndOffset = 4;

/// The layer of the system takes less than 128 KB at once.
constexpr std::size_t kMostHeld = 64UL << 10;

bool endsTransaction(std::string_view head) { return head.substr(kEndOffset, 4) != std::string_view("\0\0\0\0", 4); }

/// The writes of one open log. Used by one thread at a time. Returns SQLite's result codes.
class LogWrites {
 public:
  /// `below`: the file in the layer below, which outlives the object.
  explicit LogWrites(sqlite3_file* below) : below_(below), held_(new char[kMostHeld]) {}

  int write(std::string_view bytes, sqlite3_int64 offset) {
    const bool isNext = offset == next_;
    if (!isNext || size_ + bytes.size() > kMostHeld) {
      if (const int result = flush(); result != SQLITE_OK) return result;
    }
    const bool isHeld = isNext && bytes.size() <= kMostHeld && holds(bytes);
    if (!isNext) frame_ = Frame::none;
    next_ = offset + static_cast<sqlite3_int64>(bytes.size());
    if (!isHeld && size_ == 0) return below_->pMethods->xWrite(below_, bytes.data(), length(bytes), offset);
    std::memcpy(held_.get() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
    return isHeld ? SQLITE_OK : flush();
  }

  /// Writes what is held. The bytes of a failed write are held no longer: SQLite ends the transaction.
  int flush() {
    if (size_ == 0) return SQLITE_OK;
    const std::string_view bytes(held_.get(), size_);
    size_ = 0;
    return below_->pMethods->xWrite(below_, bytes.data(), length(bytes), next_ - length(bytes));
  }

 private:
  enum class Frame { none, middle, last };  // the frame whose head was the last write

  // Another write follows the head of a frame, and the page of a frame that does not end the transaction.
  bool holds(std::string_view bytes) {
    if (frame_ != Frame::none) return std::exchange(frame_, Frame::none) == Frame::middle;
    if (bytes.size() != kFrameHeadBytes) return false;
    frame_ = endsTransaction(bytes) ? Frame::last : Frame::middle;
    return true;
  }

  static int length(std::string_view bytes) { return static_cast<int>(bytes.size()); }

  sqlite3_file* const below_;
  const std::unique_ptr<char[]> held_;
  std::size_t size_ = 0;    // of the held bytes, which end at next_
  sqlite3_int64 next_ = 0;  // the end of the last write
  Frame frame_ = Frame::none;
};

/// An open log. SQLite reserves the memory; the file of the layer below lies behind.
struct LogFile {
  sqlite3_file file;
  LogWrites* writes;
};

constexpr std::size_t kBelowOffset = (sizeof(LogFile) / alignof(std::max_align_t) + 1) * alignof(std::max_align_t);

LogWrites& writesOf(sqlite3_file* file) { return *reinterpret_cast<LogFile*>(file)->writes; }

sqlite3_file* belowOf(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + kBelowOffset);
}

const sqlite3_io_methods& methodsBelow(sqlite3_file* file) { return *belowOf(file)->pMethods; }

/// Calls `next` when nothing is held.
template <class Next>
int flushed(sqlite3_file* file, Next&& next) {
  const int result = writesOf(file).flush();
  return result != SQLITE_OK ? result : next();
}

int closeLog(sqlite3_file* file) {
  const int flushed = writesOf(file).flush();
  delete reinterpret_cast<LogFile*>(file)->writes;
  const int closed = methodsBelow(file).xClose(belowOf(file));
  file->pMethods = nullptr;
  return flushed != SQLITE_OK ? flushed : closed;
}

int readLog(sqlite3_file* file, void* bytes, int count, sqlite3_int64 offset) {
  return flushed(file, [&] { return methodsBelow(file).xRead(belowOf(file), bytes, count, offset); });
}

int writeLog(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 offset) {
  return writesOf(file).write({static_cast<const char*>(bytes), static_cast<std::size_t>(count)}, offset);
}

int truncateLog(sqlite3_file* file, sqlite3_int64 size) {
  return flushed(file, [&] { return methodsBelow(file).xTruncate(belowOf(file), size); });
}

int syncLog(sqlite3_file* file, int flags) {
  return flushed(file, [&] { return methodsBelow(file).xSync(belowOf(file), flags); });
}

int readLogSize(sqlite3_file* file, sqlite3_int64* size) {
  return flushed(file, [&] { return methodsBelow(file).xFileSize(belowOf(file), size); });
}

int lockLog(sqlite3_file* file, int level) { return methodsBelow(file).xLock(belowOf(file), level); }

int unlockLog(sqlite3_file* file, int level) { return methodsBelow(file).xUnlock(belowOf(file), level); }

int checkLogLock(sqlite3_file* file, int* isReserved) {
  return methodsBelow(file).xCheckReservedLock(belowOf(file), isReserved);
}

int controlLog(sqlite3_file* file, int operation, void* argument) {
  return methodsBelow(file).xFileControl(belowOf(file), operation, argument);
}

int sectorSizeOfLog(sqlite3_file* file) { return methodsBelow(file).xSectorSize(belowOf(file)); }

int characteristicsOfLog(sqlite3_file* file) { return methodsBelow(file).xDeviceCharacteristics(belowOf(file)); }

constexpr sqlite3_io_methods methodsOfLogs() {
  sqlite3_io_methods methods{};
  methods.iVersion = 1;
  methods.xClose = closeLog;
  methods.xRead = readLog;
  methods.xWrite = writeLog;
  methods.xTruncate = truncateLog;
  methods.xSync = syncLog;
  methods.xFileSize = readLogSize;
  methods.xLock = lockLog;
  methods.xUnlock = unlockLog;
  methods.xCheckReservedLock = checkLogLock;
  methods.xFileControl = controlLog;
  methods.xSectorSize = sectorSizeOfLog;
  methods.xDeviceCharacteristics = characteristicsOfLog;
  return methods;
}

constexpr sqlite3_io_methods kMethodsOfLogs = methodsOfLogs();

/// A copy of the layer below with another way to open files. `layer` is the first member: SQLite passes its address.
struct Layer {
  sqlite3_vfs layer;
  sqlite3_vfs* below;
  std::string name;
};

int openFile(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* granted) {
  sqlite3_vfs* const below = reinterpret_cast<Layer*>(vfs)->below;
  if ((flags & SQLITE_OPEN_WAL) == 0) return below->xOpen(below, name, file, flags, granted);
  file->pMethods = nullptr;
  const int result = below->xOpen(below, name, belowOf(file), flags, granted);
  if (result != SQLITE_OK) {
    if (belowOf(file)->pMethods != nullptr) methodsBelow(file).xClose(belowOf(file));
    return result;
  }
  try {
    reinterpret_cast<LogFile*>(file)->writes = new LogWrites(belowOf(file));
  } catch (const std::bad_alloc&) {
    methodsBelow(file).xClose(belowOf(file));
    return SQLITE_NOMEM;
  }
  file->pMethods = &kMethodsOfLogs;
  return SQLITE_OK;
}

std::unique_ptr<Layer> layerAbove(sqlite3_vfs* below) {
  auto made = std::make_unique<Layer>(Layer{*below, below, std::string("jobq-log-") + below->zName});
  made->layer.pNext = nullptr;
  made->layer.zName = made->name.c_str();
  made->layer.szOsFile = below->szOsFile + static_cast<int>(kBelowOffset);
  made->layer.xOpen = openFile;
  return made;
}

}  // namespace

// The layers are never destroyed, because connections refer to them until the very end of the process.
const char* logWritesLayer() {
  static Mutex mutex;
  static auto& layers = *new std::map<sqlite3_vfs*, std::unique_ptr<Layer>>();
  const Lock lock(mutex);
  sqlite3_vfs* const below = sqlite3_vfs_find(nullptr);
  std::unique_ptr<Layer>& layer = layers[below];
  if (layer == nullptr) {
    layer = layerAbove(below);
    if (sqlite3_vfs_register(&layer->layer, 0) != SQLITE_OK) throw StorageError("SQLite accepts no file layer");
  }
  return layer->name.c_str();
}

}  // namespace jobq::sqlite
