// Reduces a PNG to the chunks needed by a decoder. libpng reports oddities of side chunks (colour profiles, text, sizes
// in metres) on stderr past libgd's hook, and unpacks some of these chunks. Side chunks are therefore removed before
// libpng sees the file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace jobq::image {

/// Returns the file with header, palette, transparency and pixels only, after a check of their checksums. Returns no
/// value if the file is damaged or cut off. `file` must begin with the PNG signature and a header. Pure.
std::optional<std::string> essentialPng(std::string_view file);

}  // namespace jobq::image
