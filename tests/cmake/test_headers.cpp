// The target jobq_test_headers exists for the sake of precompiled headers, and a target needs a source.
