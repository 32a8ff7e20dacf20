#include "sandbox/text_loader.h"

#include <algorithm>
#include <cstddef>

#include "sandbox/execution_limiter.h"

namespace jobq::lua {
namespace {

struct Piecewise {
  const char* text;
  std::size_t left;
};

// Hands the text to the compiler in pieces, so that the compilation of a long text can be stopped. An operator may cost
// the compiler the length of the expression, a name the number of variables.
const char* nextPiece(lua_State* lua, void* of, std::size_t* size) {
  constexpr std::size_t kPiece = 256;
  Piecewise& text = *static_cast<Piecewise*>(of);
  ExecutionLimiter::of(lua).checkDeadline(lua);
  const char* piece = text.text;
  *size = std::min(kPiece, text.left);
  text.text += *size;
  text.left -= *size;
  return piece;
}

}  // namespace

int loadText(lua_State* lua, std::string_view text, const char* name) {
  Piecewise pieces{text.data(), text.size()};
  return lua_load(lua, nextPiece, &pieces, name, "t");
}

}  // namespace jobq::lua
