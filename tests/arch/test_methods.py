"""No class has more methods than a reader can keep in mind, in C++ as in Python. Private functions count, and each
overload counts; constructors, destructors, operators and the bodies of tests do not."""
import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("core", "plugins", "sdk/include", "sdk/testkit", "tests")
PYTHON_FOLDERS = ("scripts", "sdk", "tests")
MAX_METHODS = 20

NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\])+\''
                   r'|^\s*#(?:\\\n|[^\n])*', re.S | re.M)
MACRO = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\s*(?:\([^()]*\))?")
CLASS = re.compile(r"\b(enum\s+)?(?:class|struct|union)\s+(?:alignas\([^()]*\)\s*|\[\[[^\]]*\]\]\s*)?"
                   r"(\w+(?:::\w+)*)(?:<[^;{}()]*?>)?\s*(?:final\s*)?(?::[^:;{}()][^;{}]*)?\{")
NO_METHOD = re.compile(r"\s*(?:using|typedef|friend|static_assert|enum|class|struct|union|concept)\b")


def cleaned(text):
    """Returns the code without comments, strings, directives and annotations."""
    return MACRO.sub("", NOISE.sub(" ", text))


def closing(text, start, pair):
    """Returns the position after the closing bracket for the bracket at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == pair[0]) - (text[at] == pair[1])
        if depth == 0:
            return at + 1
    return len(text)


def members(body):
    """Returns the declarations in the body of a class, without inner braces."""
    found, declaration, at = [], "", 0
    while at < len(body):
        if body[at] == "{":
            at = closing(body, at, "{}")
            # A function without a semicolon ends here, unless an initialiser list goes on.
            if "(" in declaration and not body[at:].lstrip().startswith((",", "{", ";")):
                found.append(declaration)
                declaration = ""
            continue
        if body[at] == ";":
            found.append(declaration)
            declaration = ""
        else:
            declaration += body[at]
        at += 1
    return found


def without_angles(text):
    """Returns the text without the arguments of templates."""
    before = None
    while before != text:
        before, text = text, re.sub(r"<[^<>;]*>", " ", text)
    return text


def method_of(declaration):
    """Returns the name of the declared function, or None for any other member."""
    text = re.sub(r"\b(?:public|protected|private)\s*:(?!:)", " ", declaration)
    text = re.sub(r"\[\[.*?\]\]|\b(?:explicit|noexcept|alignas|decltype|requires)\s*\([^()]*\)", " ", text)
    text = re.sub(r"\boperator\s*(?:\(\s*\)|<=>|->|<<|>>|<=|>=|<|>)", "operator", text)
    text = without_angles(text)
    if NO_METHOD.match(re.sub(r"^\s*template\b", "", text)):
        return None
    head = text.split("(")[0]
    if "(" not in text or "=" in head or re.search(r"\boperator\b|~", head) or re.match(r"[^(]*\(\s*\*", text):
        return None
    names = re.findall(r"\w+", head)
    return names[-1] if names else None


def classes(text):
    """Yields each class in the text: the name of the class, and the names of the methods."""
    text = cleaned(text)
    for found in CLASS.finditer(text):
        if found.group(1):
            continue
        name = found.group(2).split("::")[-1]
        body = text[found.end():closing(text, found.end() - 1, "{}") - 1]
        # The inner classes are counted separately.
        inner = CLASS.search(body)
        while inner:
            body = body[:inner.start()] + "struct " + body[closing(body, inner.end() - 1, "{}"):]
            inner = CLASS.search(body)
        methods = [method for method in map(method_of, members(body)) if method not in (None, name)]
        yield found.group(2), methods


def is_counted_in_python(name, is_test_class):
    """Returns whether a function of a Python class counts: `__init__`, operators and the bodies of tests do not."""
    return not (name.startswith("__") and name.endswith("__")) and not (is_test_class and name.startswith("test_"))


def python_classes(text):
    """Yields each class in the Python text: the name of the class, and the names of the methods."""
    for found in ast.walk(ast.parse(text)):
        if isinstance(found, ast.ClassDef):
            is_test_class = found.name.endswith(("Test", "Tests"))  # python_classes of tests/pytest.ini
            functions = (node.name for node in found.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
            yield found.name, [name for name in functions if is_counted_in_python(name, is_test_class)]


def check_classes(folders, suffixes, classes_of, fewest):
    """Expects at least `fewest` classes in the files with the suffixes, and no class with many methods."""
    faults, seen = [], 0
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in suffixes or "node_modules" in path.parts:
                continue
            for name, methods in classes_of(path.read_text()):
                seen += 1
                if len(methods) > MAX_METHODS:
                    faults.append(f"{path.relative_to(ROOT).as_posix()}: {name} has {len(methods)} methods, more than "
                                  f"{MAX_METHODS}: split the class by its concepts")
    assert seen > fewest, f"only {seen} classes were found"
    assert not faults, "\n".join(faults)


def test_no_class_has_many_methods():
    check_classes(FOLDERS, (".h", ".cpp"), classes, 800)


def test_no_class_of_python_has_many_methods():
    check_classes(PYTHON_FOLDERS, (".py",), python_classes, 200)


PLANTED = """
// class Commented { void f(); };
enum class Kind { a, b };
struct Forward;
template <class T>
class [[nodiscard]] Planted final : public Base<int(int)>, private Other {
 public:
  explicit Planted(int a) : a_{a}, b_(g("}")) { start(); }
  ~Planted();
  Planted& operator=(const Planted&) = delete;
  bool operator<(const Planted& other) const { return a_ < other.a_; }
  const T* operator->() const { return &t_; }
  explicit operator bool() const { return true; }
  using Call = void (*)(int);
  enum class Colour { red = f(1) };
  struct Inner {
    int one() const;
    int two = 2;
  };
  friend void swap(Planted& a, Planted& b);
  std::function<void(int)> callback;
  void (*pointer)(int) = nullptr;
  std::map<int, std::vector<int>> table{{1, {2}}};
  int sum = f(1) + f(2);

  virtual void first() = 0;
  std::map<int, std::vector<int>> second(int a = f(1), char b = '{') const noexcept { return {{a, {b}}}; }
  [[nodiscard]] static auto third() -> int;

 private:
  template <class Value>
  requires std::is_integral_v<Value>
  void put(int position, Value value) { if (position) { put(value); } }
  void put(int position) JOBQ_REQUIRES(mutex_);
  int a_ JOBQ_GUARDED_BY(mutex_) = 0;
};
"""


def test_methods_are_counted():
    assert dict(classes(PLANTED)) == {"Planted": ["first", "second", "third", "put", "put"], "Inner": ["one"]}


def test_a_large_class_is_found():
    planted = "class Large {\n" + "".join(f"  int f{i}() const {{ return {i}; }}\n" for i in range(21)) + "};\n"
    assert [len(methods) for _, methods in classes(planted)] == [21]


PLANTED_PYTHON = """
class Planted:
    lines = property(lambda self: self.text.splitlines())

    def __init__(self):
        def inner(): pass

    def __eq__(self, other): return True

    @property
    def text(self): return ""

    @text.setter
    def text(self, value): pass

    @staticmethod
    async def _hidden(): pass

    def test_parts(self): pass

    class Inner:
        def one(self): pass

def function(): pass

class PlantedTest:
    def provide(self): pass
    def test_it(self): pass
"""


def test_methods_of_python_are_counted():
    assert dict(python_classes(PLANTED_PYTHON)) == {"Planted": ["text", "text", "_hidden", "test_parts"],
                                                    "Inner": ["one"], "PlantedTest": ["provide"]}


def test_a_large_class_of_python_is_found():
    planted = "class Large:\n" + "".join(f"    def f{i}(self): pass\n" for i in range(21))
    assert [len(methods) for _, methods in python_classes(planted)] == [21]
