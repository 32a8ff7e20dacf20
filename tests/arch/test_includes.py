"""Each source file includes the headers in use: the standard header of each std name, and the project's header of each
type of the project. A header with a missing include depends on the includes of other headers, and breaks when the other
headers change."""
import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("core", "plugins", "sdk/include", "sdk/testkit", "tests")

STANDARD = {  # a standard header, and the names declared there in namespace std
    "algorithm": """adjacent_find all_of any_of binary_search clamp copy copy_if copy_n count count_if equal equal_range
        fill fill_n find find_first_of find_if find_if_not for_each generate includes is_sorted
        lexicographical_compare lower_bound make_heap max max_element min min_element minmax mismatch next_permutation
        none_of nth_element partial_sort partition pop_heap push_heap ranges remove_if replace replace_if reverse rotate sample
        search shuffle sort stable_partition stable_sort transform unique upper_bound""",
    "array": "array to_array",
    "atomic": """atomic atomic_bool atomic_flag atomic_int atomic_thread_fence memory_order memory_order_acq_rel
        memory_order_acquire memory_order_relaxed memory_order_release memory_order_seq_cst""",
    "barrier": "barrier",
    "bit": "bit_cast bit_ceil bit_width countl_zero countr_zero endian has_single_bit popcount rotl rotr",
    "bitset": "bitset",
    "cctype": "isalnum isalpha isdigit islower isprint isspace isupper isxdigit tolower toupper",
    "charconv": "chars_format from_chars to_chars",
    "chrono": "chrono",
    "cmath": """ceil cos exp floor fmod frexp isfinite isinf isnan ldexp llround log log10 log2 lround pow round sin
        sqrt""",
    "compare": "partial_ordering strong_ordering weak_ordering",
    "concepts": "convertible_to copyable default_initializable derived_from floating_point integral invocable movable same_as",
    "condition_variable": "condition_variable condition_variable_any cv_status",
    "coroutine": "coroutine_handle suspend_always suspend_never",
    "csignal": "raise sig_atomic_t signal",
    "cstdarg": "va_list",
    "cstddef": "byte max_align_t nullptr_t ptrdiff_t to_integer",
    "cstdint": """int16_t int32_t int64_t int8_t intmax_t intptr_t uint16_t uint32_t uint64_t uint8_t uintmax_t
        uintptr_t""",
    "cstdio": """FILE fclose fflush fgets fopen fprintf fputs fread fwrite perror printf putchar puts rename snprintf
        sscanf vsnprintf""",
    "cstdlib": """_Exit abort aligned_alloc atexit atof atoi atol calloc exit free getenv malloc quick_exit rand realloc
        srand strtod strtol strtoll strtoul strtoull system""",
    "cstring": """memchr memcmp memcpy memmove memset strchr strcmp strerror strlen strncmp strrchr strstr""",
    "ctime": "gmtime localtime mktime strftime time time_t timespec tm",
    "deque": "deque",
    "exception": """current_exception exception exception_ptr get_terminate make_exception_ptr nested_exception
        rethrow_exception set_terminate terminate uncaught_exceptions""",
    "filesystem": "filesystem",
    "forward_list": "forward_list",
    "fstream": "filebuf fstream ifstream ofstream",
    "functional": """bind bind_front equal_to function greater greater_equal hash identity invoke less less_equal minus
        multiplies not_equal_to not_fn placeholders plus ref cref reference_wrapper""",
    "future": "async future future_error future_status launch packaged_task promise shared_future",
    "initializer_list": "initializer_list",
    "iomanip": "put_time quoted setfill setprecision setw",
    "ios": "boolalpha dec fixed hex ios ios_base left noskipws oct right streamoff streampos streamsize uppercase",
    "iostream": "cerr cin clog cout",
    "istream": "istream ws",
    "iterator": """advance back_insert_iterator back_inserter distance forward_iterator inserter istream_iterator
        istreambuf_iterator iter_value_t make_move_iterator move_iterator next ostream_iterator ostreambuf_iterator prev
        reverse_iterator""",
    "latch": "latch",
    "limits": "numeric_limits",
    "list": "list",
    "locale": "locale",
    "map": "map multimap",
    "memory": """addressof allocator default_delete destroy_at dynamic_pointer_cast enable_shared_from_this make_shared
        make_unique shared_ptr static_pointer_cast unique_ptr weak_ptr""",
    "memory_resource": "pmr",
    "mutex": """adopt_lock call_once defer_lock lock lock_guard mutex once_flag recursive_mutex scoped_lock timed_mutex
        try_to_lock unique_lock""",
    "new": "align_val_t bad_alloc get_new_handler launder nothrow nothrow_t set_new_handler",
    "numbers": "numbers",
    "numeric": "accumulate gcd inner_product iota lcm midpoint partial_sum reduce",
    "optional": "bad_optional_access make_optional nullopt nullopt_t optional",
    "ostream": "endl flush ostream",
    "queue": "priority_queue queue",
    "random": """bernoulli_distribution discrete_distribution exponential_distribution minstd_rand mt19937 mt19937_64
        normal_distribution random_device seed_seq uniform_int_distribution uniform_real_distribution""",
    "ratio": "milli micro nano ratio",
    "regex": "cmatch regex regex_error regex_match regex_replace regex_search smatch sregex_iterator",
    "semaphore": "binary_semaphore counting_semaphore",
    "set": "multiset set",
    "shared_mutex": "shared_lock shared_mutex",
    "source_location": "source_location",
    "span": "as_bytes as_writable_bytes span",
    "sstream": "istringstream ostringstream stringbuf stringstream",
    "stack": "stack",
    "stdexcept": """domain_error invalid_argument length_error logic_error out_of_range overflow_error range_error
        runtime_error""",
    "stop_token": "nostopstate stop_callback stop_source stop_token",
    "streambuf": "streambuf",
    "string": "basic_string getline stod stoi stol stoll stoul stoull string to_string u16string u32string u8string",
    "string_view": "basic_string_view string_view",
    "system_error": """errc error_category error_code error_condition generic_category make_error_code system_category
        system_error""",
    "thread": "jthread this_thread thread",
    "tuple": "apply forward_as_tuple ignore make_tuple tie tuple tuple_cat",
    "type_traits": """add_const_t common_type_t conditional_t decay_t enable_if_t false_type
        has_unique_object_representations_v has_virtual_destructor_v integral_constant invoke_result_t is_abstract_v
        is_aggregate_v is_arithmetic_v is_base_of_v is_const_v is_constructible_v is_convertible_v is_enum_v
        is_integral_v is_invocable_v is_nothrow_move_constructible_v is_polymorphic_v is_same_v is_standard_layout_v
        is_trivially_copyable_v is_trivially_destructible_v is_void_v make_unsigned_t remove_const_t remove_cvref_t
        remove_reference_t true_type
        type_identity_t underlying_type_t void_t""",
    "typeindex": "type_index",
    "typeinfo": "bad_cast type_info",
    "unordered_map": "unordered_map unordered_multimap",
    "unordered_set": "unordered_multiset unordered_set",
    "utility": """as_const cmp_equal cmp_greater cmp_less declval exchange forward in_place in_place_index in_place_type
        index_sequence integer_sequence make_index_sequence make_pair move pair piecewise_construct swap unreachable""",
    "variant": """bad_variant_access get_if holds_alternative monostate variant variant_alternative_t variant_size_v
        visit""",
    "vector": "vector",
}
CONTAINERS = "array deque list map set span string string_view unordered_map unordered_set vector"
SHARED = {  # a name declared by the standard in each of several headers
    "abs": "cmath cstdlib",
    "begin": "iterator " + CONTAINERS,
    "cbegin": "iterator " + CONTAINERS,
    "cend": "iterator " + CONTAINERS,
    "data": "iterator " + CONTAINERS,
    "empty": "iterator " + CONTAINERS,
    "end": "iterator " + CONTAINERS,
    "erase": CONTAINERS,
    "erase_if": CONTAINERS,
    "get": "variant tuple utility array",
    "remove": "algorithm cstdio",
    "size": "iterator " + CONTAINERS,
    "size_t": "cstddef cstdio cstdlib cstring ctime",
    "ssize": "iterator " + CONTAINERS,
    "string_literals": "string",
    "literals": "chrono string string_view",
    "tuple_element_t": "tuple utility array",
    "tuple_size_v": "tuple utility array",
}
# Headers that may replace a header: the standard guarantees the replacements for streams; <iosfwd> declares enough for
# a reference.
STANDS_IN = {
    "cstdint": {"cinttypes"},
    "initializer_list": {"utility", *CONTAINERS.split()} - {"array", "span", "string_view"},
    "ios": {"istream", "ostream", "fstream", "sstream", "iostream"},
    "istream": {"iostream", "iosfwd"},
    "ostream": {"iostream", "iosfwd"},
    "ratio": {"chrono"},
    "streambuf": {"iostream"},
}

MACROS = {  # macros and similar names, and the headers: any of the headers is enough
    r"(?:TEST(?:_[FP])?|(?:EXPECT|ASSERT)_[A-Z_]+)(?=\()|testing(?=::)": ("gtest/gtest.h", "gmock/gmock.h"),
    r"errno": ("cerrno",),
    r"SIG[A-Z]{2,}": ("csignal", "signal.h"),
    r"SIZE_MAX|U?INT(?:8|16|32|64)_M(?:AX|IN)": ("cstdint",),
    r"U?(?:CHAR|INT|LONG|LLONG)_M(?:AX|IN)": ("climits",),
}
NOT_CODE = re.compile(  # comments, raw strings, strings, characters (and not the ' of 10'000)
    r'//[^\n]*|/\*.*?\*/|R"([^()\s\\]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+[<"]([^>"]+)[>"]([ \t]*// IWYU pragma: export)?', re.M)
NAMESPACE = re.compile(r"\bnamespace\b([\w:\s]*)$|\bextern\s*$")
KIND = r"\b(?:enum class|enum|class|struct|union)\s+(?:JOBQ_\w+(?:\((?:[^()]|\([^()]*\))*\))?\s+)*"  # JOBQ_: attributes
DEFINITION = re.compile(KIND + r"(\w+)\s*(?:final\s*)?(?::[^:].*)?$", re.S)
DECLARATION = re.compile(KIND + r"(\w+)\s*$")
MACRO = re.compile(r"^#define (JOBQ_\w+)", re.M)
ALIAS = re.compile(r"\busing\s+(\w+)\s*=")
DECLARED = re.compile(r"(?:" + KIND + r"|\b(?:using|typename|concept)\s+)(\w+)")
CHAIN = re.compile(r"(?<![\w:.])[A-Za-z_]\w*(?:::\w+)*")


def name(path):
    return path.relative_to(ROOT).as_posix()


@functools.cache
def sources(suffix):
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*" + suffix))]


@functools.cache
def code(path):
    """The text without comments, strings and directives of the preprocessor."""
    text = NOT_CODE.sub(" ", path.read_text())
    return re.sub(r"^[ \t]*#[ \t]*(?:include|pragma).*$", "", text, flags=re.M)


@functools.cache
def declarations(path):
    """Returns a header's types and macros, split into definitions at namespace scope and mere declarations, and the
    header's namespaces."""
    defined, declared, namespaces = set(MACRO.findall(code(path))), set(), set()
    inner = []  # an element for each open brace: true if the brace hides the names inside
    start = 0
    for end in re.finditer(r"[{};]", code(path)):
        before = code(path)[start:end.start()]
        start = end.end()
        if not any(inner):
            defined.update(ALIAS.findall(before))
            (declared if end.group() == ";" else defined).update(
                (DECLARATION if end.group() == ";" else DEFINITION).findall(before))
        if end.group() == "{":
            namespace = NAMESPACE.search(before)
            namespaces.update(re.findall(r"\w+", (namespace.group(1) or "") if namespace else ""))
            inner.append(not namespace)
        elif end.group() == "}" and inner:
            inner.pop()
    return defined, declared - defined, namespaces


@functools.cache
def owners():
    """Returns the defining headers of each type of the project."""
    found = {}
    for path in sources(".h"):
        for type_name in declarations(path)[0]:
            found.setdefault(type_name, []).append(path)
    return found


@functools.cache
def project_namespaces():
    return frozenset().union(*(declarations(path)[2] for path in sources(".h")))


def resolve(include, path):
    """The path of an included header of the project; the text of the include for any other header."""
    plugin = ROOT.joinpath(*path.relative_to(ROOT).parts[:2])  # includes between the folders of a plugin start there
    for folder in (path.parent, plugin, ROOT / "plugins", ROOT, ROOT / "sdk/include", ROOT / "sdk"):
        if (folder / include).is_file():
            return folder / include
    return include


@functools.cache
def direct(path):
    """The headers included by a file, and the headers exported there (`// IWYU pragma: export`)."""
    found = set()
    for include, _ in INCLUDE.findall(path.read_text()):
        header = resolve(include, path)
        found |= {header} | exported(header)
    return found


@functools.cache
def exported(header):
    if isinstance(header, str):
        return set()
    found = {resolve(include, header) for include, export in INCLUDE.findall(header.read_text()) if export}
    return found.union(*(exported(other) for other in found))


@functools.cache
def reached(path):
    """The headers included by a file, directly or through headers of the project."""
    found, left = set(), [path]
    while left:
        new = direct(left.pop()) - found
        found |= new
        left += [header for header in new if not isinstance(header, str)]
    return found


def headers_of(std_name):
    """The headers with a declaration of std::std_name; empty if the table has no such name."""
    headers = SHARED.get(std_name, "").split()
    headers = headers or [header for header, names in STANDARD.items() if std_name in names.split()]
    return headers + [other for header in headers for other in sorted(STANDS_IN.get(header, ()))]


def standard_faults(path, included):
    faults = []
    for std_name in sorted(set(re.findall(r"\bstd::([a-zA-Z]\w*)", code(path)))):
        headers = headers_of(std_name)
        if not headers:
            faults.append(f"{name(path)}: uses std::{std_name}, which the table in {pathlib.Path(__file__).name} lacks")
        elif not included.intersection(headers):
            faults.append(f"{name(path)}: uses std::{std_name} without <{headers[0]}>")
    for macro, headers in MACROS.items():
        used = re.search(rf"(?<![\w.>])(?:{macro})\b", code(path))
        if used and not included.intersection(headers):
            faults.append(f"{name(path)}: uses {used.group()} without <{headers[0]}>")
    return faults


def project_faults(path):
    """Returns the defining header of each type of the project named by a file, if the file has the header only through
    other headers."""
    used = set()
    for chain in CHAIN.findall(code(path)):
        parts = chain.split("::")
        while len(parts) > 1 and parts[0] in project_namespaces():
            parts.pop(0)
        used.add(parts[0])
    faults = []
    for type_name in sorted(used - set(DECLARED.findall(code(path)))):
        headers = reached(path).intersection(owners().get(type_name, ()))
        if len(headers) == 1 and not headers & direct(path):
            faults.append(f"{name(path)}: uses {type_name} without \"{name(*headers)}\"")
        elif not headers and any(type_name in declarations(other)[1] for other in reached(path)
                                 if not isinstance(other, str)):
            faults.append(f"{name(path)}: uses {type_name}, which only another header declares")
    return faults


def report(faults):
    leaning = {fault.split(":")[0] for fault in faults}
    return f"missing includes: {len(faults)}, files that lack them: {len(leaning)}\n" + "\n".join(faults)


def test_headers_include_the_standard_headers_they_use():
    faults = [fault for path in sources(".h") for fault in standard_faults(path, direct(path))]
    assert not faults, report(faults)


def test_headers_include_the_project_headers_they_use():
    faults = [fault for path in sources(".h") for fault in project_faults(path)]
    assert not faults, report(faults)


def test_sources_reach_the_standard_headers_they_use():
    """A source file may leave an include to a header of the project, but not to a header of a library."""
    faults = [fault for path in sources(".cpp") for fault in standard_faults(path, reached(path))]
    assert not faults, report(faults)
