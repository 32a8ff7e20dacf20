#include "watch.h"

namespace jobq::lua {

Watch::Watch(lua_State* lua) : main_(lua) { *static_cast<Watch**>(lua_getextraspace(lua)) = this; }

void Watch::arm(Judge judge) {
  judge_ = std::move(judge);
  reason_.clear();
  left_ = kStepsALook;
  // Coroutines take over the hook of the thread that makes them.
  lua_sethook(main_, hook, LUA_MASKCOUNT, kInstructionsALook);
}

void Watch::disarm() {
  lua_sethook(main_, nullptr, 0, 0);
  judge_ = nullptr;
}

void Watch::hook(lua_State* lua, lua_Debug*) { of(lua).look(lua); }

void Watch::hurry() {
  if (judge_) lua_sethook(main_, hook, LUA_MASKCOUNT, 1);
}

bool Watch::isOver() {
  if (reason_.empty() && judge_) reason_ = judge_();
  if (!reason_.empty()) left_ = 0;
  return !reason_.empty();
}

// From the end on every instruction raises, in every thread that comes to run: a pcall that swallows the error comes
// no further than its next instruction.
void Watch::look(lua_State* lua) {
  left_ = kStepsALook;
  const bool isOver = this->isOver();
  const int interval = isOver ? 1 : kInstructionsALook;
  if (lua_gethookcount(lua) != interval) lua_sethook(lua, hook, LUA_MASKCOUNT, interval);
  if (!isOver) return;
  luaL_error(lua, "%s", reason_.c_str());
}

}  // namespace jobq::lua
