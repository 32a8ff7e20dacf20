// Libraries for a sandbox without a handler or a filter.
#pragma once

#include <lua.hpp>

#include "sandbox/library_opener.h"
#include "stdlib/library.h"

namespace jobq::lua::test {

/// The libraries of every script and no further library.
class StandardLibraries final : public LibraryOpener {
 public:
  void open(lua_State* lua) const override { openStandardLibraries(lua); }
};

}  // namespace jobq::lua::test
