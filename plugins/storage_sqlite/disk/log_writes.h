// A file layer (sqlite3_vfs) of the writing connection: the pages that a transaction adds to the write-ahead log are
// written together. SQLite writes the head and the page of each frame by themselves, two system calls a page.
//
// SQLite tells readers and a later start of the frames only behind the frame that ends the transaction. The layer holds
// frames back until that frame, and no longer: nothing is held behind a commit. All other writes go through at once.
// The order of the writes and of the syncs stays as SQLite makes it.
#pragma once

namespace jobq::sqlite {

/// Returns the name of the layer, for the parameter `vfs` of a URI. The layer passes all calls on to the layer that is
/// SQLite's default at the moment of the call. Any thread. Throws StorageError if SQLite does not accept the layer.
const char* logWritesLayer();

}  // namespace jobq::sqlite
