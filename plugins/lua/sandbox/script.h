// A compiled script.
#pragma once

#include <memory>
#include <string>

namespace jobq::lua {

/// An immutable compiled script, shared by the sandboxes that run it.
struct Script {
  std::string name;      ///< name of the file without `.lua`
  std::string text;      ///< exactly as read
  std::string bytecode;  ///< made by the server itself; foreign bytecode is never loaded
};
using ScriptPtr = std::shared_ptr<const Script>;

}  // namespace jobq::lua
