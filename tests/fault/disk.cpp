#include "disk.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include "plugins/storage_sqlite/disk/page_cache.h"

namespace jobq::fault {
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kSector = 512;
constexpr std::size_t kCachePage = 4'096;

std::string contentOf(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void overwrite(std::string& platter, std::uint64_t at, std::string_view bytes) {
  if (platter.size() < at + bytes.size()) platter.resize(at + bytes.size());
  platter.replace(at, bytes.size(), bytes);
}

}  // namespace

std::string nameOf(DiskCall call) {
  switch (call) {
    case DiskCall::write: return "write";
    case DiskCall::sync: return "sync";
    case DiskCall::truncate: return "truncate";
    case DiskCall::open: return "open";
    case DiskCall::remove: return "remove";
  }
  return "?";
}

void Disk::watch(fs::path folder) {
  Lock lock(mutex_);
  folder_ = std::move(folder);
  files_.clear();
}

void Disk::forget() {
  Lock lock(mutex_);
  folder_.clear();
  files_.clear();
  cut_ = false;
  cutAt_ = 0;
}

void Disk::cutAt(std::uint64_t step) {
  Lock lock(mutex_);
  cutAt_ = step;
  steps_ = 0;
}

bool Disk::isCut() const {
  Lock lock(mutex_);
  return cut_;
}

std::uint64_t Disk::steps() const {
  Lock lock(mutex_);
  return steps_;
}

void Disk::fail(const DiskFault& fault) {
  Lock lock(mutex_);
  fault_ = fault;
  calls_ = {};
  failed_ = false;
}

std::uint64_t Disk::calls(DiskCall call) const {
  Lock lock(mutex_);
  return calls_[static_cast<std::size_t>(call)];
}

bool Disk::hasFailed() const {
  Lock lock(mutex_);
  return failed_;
}

int Disk::step(DiskCall call) {
  const int answer = stepOfPower();
  return answer != SQLITE_OK ? answer : answerTo(call);
}

int Disk::stepOfPower() {
  ++steps_;
  if (steps_ == cutAt_) cut_ = true;
  return cut_ ? SQLITE_IOERR : SQLITE_OK;
}

int Disk::answerTo(DiskCall call) {
  const std::uint64_t number = ++calls_[static_cast<std::size_t>(call)];
  if (fault_.number == 0 || call != fault_.call || number < fault_.number) return SQLITE_OK;
  if (number > fault_.number && !fault_.forever) return SQLITE_OK;
  failed_ = true;
  return fault_.answer;
}

Disk::File* Disk::watched(const char* name) {
  if (name == nullptr || folder_.empty()) return nullptr;
  const fs::path parent = fs::path(name).parent_path();
  if (parent != folder_ && parent != folder_ / "bodies") return nullptr;
  const auto known = files_.find(name);
  if (known != files_.end()) return &known->second;
  File& file = files_[name];
  file.safe = fs::exists(name);
  if (file.safe) file.platter = contentOf(name);
  return &file;
}

// A page is already on its way to the disk when the power goes at its step.
int Disk::write(const char* name, std::uint64_t at, std::string_view bytes) {
  File* const file = watched(name);
  if (cut_ || bytes.empty()) return step(DiskCall::write);
  int answer = SQLITE_OK;
  for (bool isFirst = true; answer == SQLITE_OK && !bytes.empty(); isFirst = false) {
    answer = isFirst ? step(DiskCall::write) : stepOfPower();
    const std::size_t size = std::min(kCachePage - at % kCachePage, bytes.size());
    const bool isCached = file != nullptr && (answer == SQLITE_OK || cut_);
    if (isCached) file->cache.push_back({false, at, std::string(bytes.substr(0, size))});
    at += size;
    bytes.remove_prefix(size);
  }
  return answer;
}

void Disk::sync(File& file) {
  for (const Pending& write : file.cache) {
    if (write.truncation) {
      file.platter.resize(write.at);
    } else {
      overwrite(file.platter, write.at, write.bytes);
    }
  }
  file.cache.clear();
}

// Makes the names durable. The content of the files still needs a sync of its own.
void Disk::syncFolderOf(const char* name) {
  const fs::path folder = fs::path(name).parent_path();
  const auto isInside = [&folder](const auto& entry) { return fs::path(entry.first).parent_path() == folder; };
  std::erase_if(files_, [&](const auto& entry) { return entry.second.deleted && isInside(entry); });
  for (auto& entry : files_) entry.second.safe = entry.second.safe || isInside(entry);
}

// The fate of a write: 0 lost, 1 whole, otherwise some of its sectors.
void Disk::resolve(File& file, const Pending& write, int fate, std::mt19937_64& random) {
  if (fate == 0) return;
  if (write.truncation) {
    file.platter.resize(write.at);
    return;
  }
  if (fate == 1) {
    overwrite(file.platter, write.at, write.bytes);
    return;
  }
  for (std::size_t from = 0; from < write.bytes.size();) {
    const std::size_t size = std::min(kSector - (write.at + from) % kSector, write.bytes.size() - from);
    if (random() % 2 == 0) overwrite(file.platter, write.at + from, std::string_view(write.bytes).substr(from, size));
    from += size;
  }
}

// The whole cache often shares one fate, as on a disk after an idle or a busy moment.
void Disk::resolve(File& file, std::mt19937_64& random) {
  const auto common = random() % 4;
  for (const Pending& write : file.cache) {
    resolve(file, write, static_cast<int>(common < 2 ? common : random() % 3), random);
  }
  if (!file.safe) file.safe = common != 0 && random() % 2 == 0;
  if (file.deleted && random() % 2 == 0) file.safe = false;
  file.cache.clear();
  file.deleted = false;
}

void Disk::restore(std::mt19937_64& random) {
  Lock lock(mutex_);
  for (auto& [name, file] : files_) {
    resolve(file, random);
    fs::remove(name);
    if (file.safe) std::ofstream(name, std::ios::binary) << file.platter;
  }
  std::erase_if(files_, [](const auto& entry) { return !entry.second.safe; });
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.path().string().ends_with("-shm")) fs::remove(entry.path());
  }
  cut_ = false;
  cutAt_ = 0;
  steps_ = 0;
}

// The side of SQLite.
struct Layer {
  using Methods = sqlite3_io_methods;

  /// SQLite allots both handles in one piece: ours first, then the handle of the system's layer.
  struct Handle {
    sqlite3_file base;
    const char* name;  // SQLite keeps the name as long as the file is open
    bool newJournal;   // the system's layer syncs the folder with the first sync of a new journal

    sqlite3_file* inner() { return reinterpret_cast<sqlite3_file*>(this + 1); }
    static Handle& of(sqlite3_file* file) { return *reinterpret_cast<Handle*>(file); }
  };

  template <auto kMethod, class... Arguments>
  static int forward(sqlite3_file* file, Arguments... arguments) {
    sqlite3_file* inner = Handle::of(file).inner();
    return (inner->pMethods->*kMethod)(inner, arguments...);
  }

  static int write(sqlite3_file* file, const void* data, int bytes, sqlite3_int64 at) {
    Disk& disk = Disk::instance();
    {
      Lock lock(disk.mutex_);
      const int answer = disk.write(Handle::of(file).name, static_cast<std::uint64_t>(at),
                                    {static_cast<const char*>(data), static_cast<std::size_t>(bytes)});
      if (answer != SQLITE_OK) return answer == SQLITE_IOERR ? SQLITE_IOERR_WRITE : answer;
    }
    return forward<&Methods::xWrite>(file, data, bytes, at);
  }

  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    Disk& disk = Disk::instance();
    {
      Lock lock(disk.mutex_);
      Disk::File* watched = disk.watched(Handle::of(file).name);
      const int answer = disk.step(DiskCall::truncate);
      if (answer != SQLITE_OK) return answer == SQLITE_IOERR ? SQLITE_IOERR_TRUNCATE : answer;
      if (watched != nullptr) watched->cache.push_back({true, static_cast<std::uint64_t>(size), {}});
    }
    return forward<&Methods::xTruncate>(file, size);
  }

  static int sync(sqlite3_file* file, int) {
    Disk& disk = Disk::instance();
    Lock lock(disk.mutex_);
    Disk::File* watched = disk.watched(Handle::of(file).name);
    const int answer = disk.step(DiskCall::sync);
    if (answer != SQLITE_OK) return answer == SQLITE_IOERR ? SQLITE_IOERR_FSYNC : answer;
    if (watched != nullptr) Disk::sync(*watched);
    if (watched != nullptr && std::exchange(Handle::of(file).newJournal, false)) {
      disk.syncFolderOf(Handle::of(file).name);
    }
    return SQLITE_OK;
  }

  static void barrier(sqlite3_file* file) {
    sqlite3_file* inner = Handle::of(file).inner();
    inner->pMethods->xShmBarrier(inner);
  }

  static int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* outFlags) {
    Disk& disk = Disk::instance();
    Handle& handle = *new (file) Handle{};
    handle.name = name;
    handle.newJournal = (flags & SQLITE_OPEN_CREATE) != 0 &&
                        (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL)) != 0;
    {
      Lock lock(disk.mutex_);
      Disk::File* watched = disk.watched(name);
      // A body file is opened to be read only. Reading goes on without power, as it does for an open file.
      constexpr int kToRead = SQLITE_OPEN_READONLY | SQLITE_OPEN_SUPER_JOURNAL;
      const bool isRead = (flags & kToRead) == kToRead;
      const int answer = isRead ? disk.answerTo(DiskCall::open) : disk.step(DiskCall::open);
      if (answer != SQLITE_OK) return answer == SQLITE_IOERR ? SQLITE_CANTOPEN : answer;
      if (watched != nullptr && watched->deleted) *watched = Disk::File{};
    }
    const int result = below->xOpen(below, name, handle.inner(), flags, outFlags);
    if (result == SQLITE_OK) handle.base.pMethods = &kMethods;
    return result;
  }

  static int remove(sqlite3_vfs*, const char* name, int syncFolder) {
    Disk& disk = Disk::instance();
    {
      Lock lock(disk.mutex_);
      Disk::File* watched = disk.watched(name);
      const int answer = disk.step(DiskCall::remove);
      if (answer != SQLITE_OK) return answer == SQLITE_IOERR ? SQLITE_IOERR_DELETE : answer;
      if (watched != nullptr) {
        if (syncFolder != 0) {
          disk.files_.erase(name);
        } else {
          watched->deleted = true;
        }
      }
    }
    return below->xDelete(below, name, 0);
  }

  static const Methods kMethods;
  static sqlite3_vfs* below;
};

sqlite3_vfs* Layer::below = nullptr;

const sqlite3_io_methods Layer::kMethods = {
    3,
    forward<&Methods::xClose>,
    forward<&Methods::xRead, void*, int, sqlite3_int64>,
    write,
    truncate,
    sync,
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

Disk& Disk::instance() {
  static Disk disk;
  static const sqlite3_vfs* const kInstalled = [] {
    (void)sqlite::installPageCache();  // the plugin would come after SQLite's first use
    Layer::below = sqlite3_vfs_find(nullptr);
    static sqlite3_vfs layer = *Layer::below;
    layer.zName = "jobq-disk";
    layer.szOsFile = static_cast<int>(sizeof(Layer::Handle)) + Layer::below->szOsFile;
    layer.xOpen = Layer::open;
    layer.xDelete = Layer::remove;
    sqlite3_vfs_register(&layer, 1);
    return &layer;
  }();
  (void)kInstalled;
  return disk;
}

}  // namespace jobq::fault
