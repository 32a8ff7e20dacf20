// A layer above SQLite's page cache (sqlite3_pcache_methods2), which makes the end of a transaction cheap.
//
// At each commit SQLite has its cache drop the pages behind the end of the file. SQLite's cache looks for them only if
// it has ever had so great a number, and the exchange of two page numbers (PageNumbers) makes it believe so in nearly
// every transaction: the commit then looks at each page in the cache, 8,000 of 32 MB. The layer passes the call on only
// if there may be such a page. All other calls are passed on unchanged.
#pragma once

namespace jobq::sqlite {

/// Has all connections of the process use the layer. A later call has no effect. Returns false if SQLite refuses, as
/// when other code has used SQLite before: commits are then slower, and equally correct. Any thread.
bool installPageCache() noexcept;

}  // namespace jobq::sqlite
