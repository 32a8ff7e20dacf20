// The target jobq_test_headers needs a source of its own; what it is for are its precompiled headers.
