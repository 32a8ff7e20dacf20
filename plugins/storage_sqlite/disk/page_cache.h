// A layer above SQLite's page cache (sqlite3_pcache_methods2), which makes the end of a transaction cheap.
//
// At each commit SQLite has its cache drop the pages behind the end of the file. SQLite's cache looks for them only if
// it has had so great a number since the last such call, and the exchange of two page numbers (PageNumbers) gives it
// one in nearly every transaction: the commit then looks at each page in the cache, 8,000 of 32 MB. The layer passes
// the call on only if there may be such a page. All other calls are passed on unchanged.
#pragma once

namespace jobq::sqlite {

/// Has all connections of the process use the layer. A later call has no effect. Returns false if SQLite refuses, as
/// when other code has used SQLite before: commits are then slower, and equally correct. Any thread, while no
/// other thread uses SQLite.
bool installPageCache() noexcept;

}  // namespace jobq::sqlite
