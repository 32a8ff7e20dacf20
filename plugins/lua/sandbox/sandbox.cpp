#include "sandbox/sandbox.h"

#include <algorithm>
#include <new>
#include <utility>

#include "sandbox/environment.h"
#include "sandbox/hidden_names.h"
#include "sandbox/text_loader.h"

namespace jobq::lua {
namespace {

// Keys of the registry, by their addresses.
const char kMain = 0;       // the main function of the loaded script
const char kErrorText = 0;  // the function given to setErrorText()

}  // namespace

Sandbox::Sandbox(std::size_t memory, std::size_t plain, const LibraryOpener& libraries)
    : heap_(memory, plain), lua_(lua_newstate(resize, this)) {
  if (lua_ == nullptr) throw std::bad_alloc();
  limiter_ = std::make_unique<ExecutionLimiter>(lua_, plain);
  constexpr lua_CFunction kPrepare = [](lua_State* lua) {
    hideNames(lua);
    static_cast<const LibraryOpener*>(lua_touserdata(lua, 1))->open(lua);
    return 0;
  };
  lua_pushcfunction(lua_, kPrepare);
  lua_pushlightuserdata(lua_, const_cast<LibraryOpener*>(&libraries));
  if (lua_pcall(lua_, 1, 0, 0) != LUA_OK) {
    lua_close(lua_);
    throw std::bad_alloc();
  }
}

Sandbox::~Sandbox() { lua_close(lua_); }

Sandbox& Sandbox::of(lua_State* lua) {
  void* self = nullptr;
  lua_getallocf(lua, &self);
  return *static_cast<Sandbox*>(self);
}

void* Sandbox::resize(void* self, void* block, std::size_t before, std::size_t after) {
  Sandbox& sandbox = *static_cast<Sandbox*>(self);
  Heap& heap = sandbox.heap_;
  const std::uint64_t lookedThrough = heap.lookedThrough();
  void* moved = heap.resize(block, before, after);
  if (sandbox.limiter_) {
    sandbox.limiter_->setLargeBlock(heap.largest(), heap.wasRefused());
    if (heap.lookedThrough() != lookedThrough) sandbox.limiter_->checkSoon();
  }
  return moved;
}

namespace {

struct Task {
  bool isLoaded;
  const Script& script;
  const std::function<void(lua_State*)>& body;
};

struct Translation {
  std::string_view text;
  const std::string& chunk;
  std::string bytecode;
};

int append(lua_State*, const void* bytes, std::size_t size, void* to) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), size);
  return 0;
}

}  // namespace

int Sandbox::perform(lua_State* lua) {
  Task& task = *static_cast<Task*>(lua_touserdata(lua, 1));
  lua_settop(lua, 0);
  if (!task.isLoaded) {
    const std::string& code = task.script.bytecode;
    if (luaL_loadbufferx(lua, code.data(), code.size(), task.script.name.c_str(), "b") != LUA_OK) return lua_error(lua);
    lua_rawsetp(lua, LUA_REGISTRYINDEX, &kMain);
    task.isLoaded = true;
  }
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &kMain);
  pushEnvironment(lua);
  // No object of the preceding script can see the new environment: the objects went with the old environment.
  lua_setupvalue(lua, 1, 1);
  lua_call(lua, 0, 1);
  if (!lua_isfunction(lua, 1)) {
    return luaL_error(lua, "%s.lua returns no function: end the script with `return function(...) ... end`",
                      task.script.name.c_str());
  }
  task.body(lua);
  ExecutionLimiter::of(lua).checkAtEnd(lua);
  return 0;
}

int Sandbox::translate(lua_State* lua) {
  Translation& task = *static_cast<Translation*>(lua_touserdata(lua, 1));
  if (loadText(lua, task.text, task.chunk.c_str()) != LUA_OK) return lua_error(lua);
  lua_dump(lua, append, &task.bytecode, 0);
  return 0;
}

std::string Sandbox::compile(std::string_view text, const std::string& chunk, EndCondition& endCondition) {
  Translation task{text, chunk, {}};
  if (const auto fault = attempt(guarded<translate>, &task, endCondition)) throw ScriptError(*fault);
  return std::move(task.bytecode);
}

// Runs `work` under the limits. Returns the reason of a failure, or nullopt on success.
std::optional<std::string> Sandbox::attempt(lua_CFunction work, void* task, EndCondition& endCondition) {
  limiter_->arm(endCondition);
  lua_pushcfunction(lua_, work);
  lua_pushlightuserdata(lua_, task);
  const int status = lua_pcall(lua_, 1, 0, 0);
  // The limiter stays armed here, because an error that is a table may have a text without end.
  std::optional<std::string> fault;
  if (status != LUA_OK && !limiter_->reason()) fault = describe(status);
  limiter_->disarm();
  if (limiter_->reason()) fault = limiter_->reason();
  spent_ = spent_ || limiter_->reason() || status == LUA_ERRMEM;
  lua_settop(lua_, 0);
  return fault;
}

void Sandbox::run(const ScriptPtr& script, EndCondition& endCondition, LineSink* lines,
                  const std::function<void(lua_State*)>& body) {
  Task task{loaded_ == script, *script, body};
  lines_ = lines;
  isSeeded_ = false;
  const auto fault = attempt(guarded<perform>, &task, endCondition);
  lines_ = nullptr;
  // All processors share the reference count of the script, so the pointer is not written while the script stays the
  // same.
  if (!task.isLoaded) loaded_ = nullptr;
  if (task.isLoaded && loaded_ != script) loaded_ = script;
  forget();
  if (fault) throw ScriptError(*fault);
}

// Drops the references to the script's objects, so that the next collection frees the objects. Skipped for little
// memory, where the drop is not worth its price: the next script's environment replaces the old environment before any
// line of the next script runs.
void Sandbox::forget() {
  if (heap_.held() <= kLittle) return;
  dropEnvironment(lua_);
  if (!loaded_) return;
  lua_rawgetp(lua_, LUA_REGISTRYINDEX, &kMain);
  lua_pushnil(lua_);
  lua_setupvalue(lua_, 1, 1);
  lua_settop(lua_, 0);
}

void setErrorText(lua_State* lua, lua_CFunction spell) {
  lua_pushcfunction(lua, spell);
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &kErrorText);
}

std::string Sandbox::describe(int status) {
  if (status == LUA_ERRMEM && heap_.wasCrowded()) {
    return "the number keys of a table share one hash chain, in which each search would take too long: use texts as "
           "keys";
  }
  if (status == LUA_ERRMEM) {
    return "not enough memory: a script has " + std::to_string(heap_.most() >> 20) + " MB (lua.memory)";
  }
  // Making a string may exceed the memory of the script, and outside of a protected call an error of memory would end
  // the process.
  if (lua_type(lua_, -1) != LUA_TSTRING) {
    lua_rawgetp(lua_, LUA_REGISTRYINDEX, &kErrorText);
    lua_insert(lua_, -2);
    lua_pcall(lua_, 1, 1, 0);
  }
  if (lua_type(lua_, -1) != LUA_TSTRING) return "the error is not a text";
  std::size_t size = 0;
  const char* bytes = lua_tolstring(lua_, -1, &size);
  if (size == 0) return "the error is an empty text";
  return std::string(bytes, std::min(size, kLongestMessage)) + (size > kLongestMessage ? "..." : "");
}

}  // namespace jobq::lua
