#include "sqlite_vfs.h"

#include <cerrno>
#include <filesystem>

namespace jobq::testkit {
namespace {

LogFaults faults;
BodyFaults bodies;
sqlite3_vfs* below = nullptr;

/// SQLite allots a common block for a `File` and, directly behind, the file of the layer below.
struct File {
  sqlite3_file base;
  bool log;
  bool database;
  bool body;

  sqlite3_file* inner() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  static File& of(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }
};

template <auto kMethod, class... Arguments>
int forward(sqlite3_file* file, Arguments... arguments) {
  sqlite3_file* inner = File::of(file).inner();
  return (inner->pMethods->*kMethod)(inner, arguments...);
}

int writeFile(sqlite3_file* file, const void* data, int bytes, sqlite3_int64 at) {
  if (File::of(file).log) {
    const int number = ++faults.writes;
    faults.bytes += bytes;
    const int answer = faults.writeAnswers;
    if (answer != SQLITE_OK && number >= faults.writesFrom) {
      if (faults.failsOnce) faults.writeAnswers = SQLITE_OK;
      return answer;
    }
  }
  if (File::of(file).body) {
    const int number = ++bodies.writes;
    const int answer = bodies.writeAnswers;
    if (answer != SQLITE_OK && number >= bodies.writesFrom) return answer;
  }
  return forward<&sqlite3_io_methods::xWrite>(file, data, bytes, at);
}

int readFile(sqlite3_file* file, void* data, int bytes, sqlite3_int64 at) {
  const int answer = File::of(file).body ? bodies.readAnswers.load() : SQLITE_OK;
  return answer != SQLITE_OK ? answer : forward<&sqlite3_io_methods::xRead>(file, data, bytes, at);
}

int syncFile(sqlite3_file* file, int flags) {
  if (File::of(file).log) {
    ++faults.syncs;
    faults.onSync();
    if (const int answer = faults.syncAnswers; answer != SQLITE_OK) return answer;
  }
  if (File::of(file).database) faults.onDatabaseSync();
  if (File::of(file).body) {
    bodies.onSync();
    if (const int answer = bodies.syncAnswers; answer != SQLITE_OK) return answer;
  }
  return forward<&sqlite3_io_methods::xSync>(file, flags);
}

void barrier(sqlite3_file* file) {
  sqlite3_file* inner = File::of(file).inner();
  inner->pMethods->xShmBarrier(inner);
}

using Methods = sqlite3_io_methods;

const Methods kMethods = {
    3,
    forward<&Methods::xClose>,
    readFile,
    writeFile,
    forward<&Methods::xTruncate, sqlite3_int64>,
    syncFile,
    forward<&Methods::xFileSize, sqlite3_int64*>,
    forward<&Methods::xLock, int>,
    forward<&Methods::xUnlock, int>,
    forward<&Methods::xCheckReservedLock, int*>,
    forward<&Methods::xFileControl, int, void*>,
    forward<&Methods::xSectorSize>,
    forward<&Methods::xDeviceCharacteristics>,
    forward<&Methods::xShmMap, int, int, int, void volatile**>,
    forward<&Methods::xShmLock, int, int, int>,
    barrier,
    forward<&Methods::xShmUnmap, int>,
    forward<&Methods::xFetch, sqlite3_int64, int, void**>,
    forward<&Methods::xUnfetch, sqlite3_int64, void*>,
};

int openFile(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* outFlags) {
  File& ours = *new (file) File{};
  ours.log = (flags & SQLITE_OPEN_WAL) != 0;
  ours.database = (flags & SQLITE_OPEN_MAIN_DB) != 0;
  ours.body = (flags & SQLITE_OPEN_SUPER_JOURNAL) != 0;
  if (ours.body) bodies.onOpening();
  if (const int answer = bodies.openAnswers; ours.body && answer != SQLITE_OK) {
    errno = bodies.openError;
    return answer;
  }
  const int result = below->xOpen(below, name, ours.inner(), flags, outFlags);
  if (result == SQLITE_OK) ours.base.pMethods = &kMethods;
  return result;
}

int deleteFile(sqlite3_vfs*, const char* name, int syncFolder) {
  if (std::filesystem::path(name).parent_path().filename() == "bodies") bodies.onDeletion();
  return below->xDelete(below, name, syncFolder);
}

sqlite3_vfs* install() {
  below = sqlite3_vfs_find(nullptr);
  static sqlite3_vfs layer = *below;
  layer.zName = "jobq-faults";
  layer.szOsFile = static_cast<int>(sizeof(File)) + below->szOsFile;
  layer.xOpen = openFile;
  layer.xDelete = deleteFile;
  sqlite3_vfs_register(&layer, 1);
  return &layer;
}

}  // namespace

LogFaults& logFaults() {
  static const sqlite3_vfs* const kInstalled = install();
  (void)kInstalled;
  return faults;
}

BodyFaults& bodyFaults() { return bodies; }

}  // namespace jobq::testkit
