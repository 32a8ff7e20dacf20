// The seam between a sandbox and the libraries of its scripts.
#pragma once

#include <lua.hpp>

namespace jobq::lua {

/// Installs the libraries of scripts in the states of new sandboxes. Owned by the user of the sandboxes. Any thread,
/// several threads at a time.
class LibraryOpener {
 public:
  /// Installs all libraries (environment.h, setErrorText()) in the state `lua`. Called once by the constructor of each
  /// sandbox, on its thread, within a protected call: a Lua error or an exception makes the constructor throw
  /// std::bad_alloc.
  virtual void open(lua_State* lua) const = 0;

 protected:
  ~LibraryOpener() = default;
};

}  // namespace jobq::lua
