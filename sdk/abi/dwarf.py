"""Reads the classes of the namespace jobq from `readelf --debug-dump=info`: virtuals, fields, and references."""
import re
import subprocess

HEAD = re.compile(r"^\s*<(\d+)><([0-9a-f]+)>: Abbrev Number: \d+ \((\w+)\)")
ATTRIBUTE = re.compile(r"^\s*<[0-9a-f]+>\s+(DW_AT_(?:name|type|linkage_name|declaration|vtable_elem_location|artificial|"
                       r"external|accessibility))\s*: (.*)$")
LONGEST_FILTER = 60  # seconds: bounds a hang, and judges no pace
RECORDS = ("DW_TAG_structure_type", "DW_TAG_class_type")
QUALIFIERS = {"DW_TAG_pointer_type": "*", "DW_TAG_reference_type": "&", "DW_TAG_rvalue_reference_type": "&&",
              "DW_TAG_const_type": " const"}
SHORTER = [  # pairs of a pattern in the names of types and the usual short form
    (r"\[abi:cxx11\]|jobq::(?:abi::)?", ""),
    (r"std::chrono::_V2::", "std::chrono::"), (r"std::__cxx11::", "std::"),
    (r"(?:std::)?basic_string<char, std::char_traits<char>, std::allocator<char> ?>", "string"),
    (r"(?:std::)?basic_string_view<char, std::char_traits<char> ?>", "string_view"),
    (r"std::chrono::duration<long(?: int)?, std::ratio<1l?, 1000l?> ?>", "Millis"),
    (r"std::chrono::time_point<std::chrono::system_clock, Millis ?>", "Instant"),
    (r", (?:18446744073709551615ul|std::(?:allocator|default_delete)<[\w: ]+> ?)(?=>)", ""),
    (r"\bstd::", ""), (r" +>", ">"),
]


def shorter(text):
    for pattern, instead in SHORTER:
        text = re.sub(pattern, instead, text)
    return text


class Entry:
    """An entry of the debugging information, with its parent, children and attributes."""

    def __init__(self, tag, parent):
        self.tag, self.parent, self.children, self.attributes = tag, parent, [], {}

    def text(self, name):
        value = self.attributes.get(name)
        return None if value is None else re.sub(r"^\((?:indirect|alt indirect)[^)]*\): ", "", value).strip()

    def number(self, name):
        """Returns the value of a constant, or of a block with a constant. Returns None if the attribute is missing."""
        value = self.attributes.get(name)
        if value is None:
            return None
        constant = re.search(r"DW_OP_(?:constu|plus_uconst): (\d+)", value)
        return int(constant[1]) if constant else int(value.split()[0], 0)

    def flag(self, name):
        return name in self.attributes


class Types:
    def __init__(self, dump):
        self._entries = {}
        self._named = {}  # complete types of namespace jobq: "JobSpec", "Holder::Kind"
        self._read(dump)

    def _read(self, dump):
        path = []
        for line in dump.splitlines():
            head = HEAD.match(line)
            if head:
                depth = int(head[1])
                del path[depth:]
                entry = Entry(head[3], path[-1] if path else None)
                if path:
                    path[-1].children.append(entry)
                path.append(entry)
                self._entries[head[2]] = entry
            elif path:
                attribute = ATTRIBUTE.match(line)
                if attribute:
                    path[-1].attributes[attribute[1]] = attribute[2]
        for entry in self._entries.values():
            name = self._name(entry)
            if name and not entry.flag("DW_AT_declaration"):
                self._named[name] = entry

    def _name(self, entry):
        """Returns the name of a type within namespace jobq or jobq::abi, or None for any other entry."""
        if entry.tag not in (*RECORDS, "DW_TAG_enumeration_type") or entry.text("DW_AT_name") is None:
            return None
        names, at = [entry.text("DW_AT_name")], entry.parent
        while at is not None and at.tag in RECORDS:
            names.insert(0, at.text("DW_AT_name") or "")
            at = at.parent
        spaces = []
        while at is not None and at.tag == "DW_TAG_namespace":
            spaces.insert(0, at.text("DW_AT_name") or "")
            at = at.parent
        return "::".join(names) if spaces in (["jobq"], ["jobq", "abi"]) else None

    def _target(self, entry):
        value = entry.attributes.get("DW_AT_type")
        return None if value is None else self._entries[value.strip("<> \t")[2:]]

    def _functions(self, name):
        return [child for child in self._named[name].children
                if child.tag == "DW_TAG_subprogram" and child.flag("DW_AT_vtable_elem_location")
                and not child.flag("DW_AT_artificial")]

    def _fields(self, entry):
        return [child for child in entry.children
                if child.tag == "DW_TAG_member" and not child.flag("DW_AT_artificial")
                and not child.flag("DW_AT_external") and not child.text("DW_AT_name").startswith("_vptr")]

    def _type_name(self, entry):
        if entry is None:
            return "void"
        if entry.tag in QUALIFIERS:
            return self._type_name(self._target(entry)) + QUALIFIERS[entry.tag]
        if entry.tag == "DW_TAG_subroutine_type":
            arguments = [self._type_name(self._target(child)) for child in entry.children]
            return f"{self._type_name(self._target(entry))}({', '.join(arguments)})"
        return self._name(entry) or entry.text("DW_AT_name") or "unnamed"

    def _is_private(self, record, field):
        fallback = "3" if record.tag == "DW_TAG_class_type" else "1"
        return field.attributes.get("DW_AT_accessibility", fallback).split()[0] != "1"

    def interfaces(self):
        return [name for name, entry in self._named.items() if entry.tag in RECORDS and self._functions(name)]

    def bases(self, name):
        return [self._type_name(self._target(child)) for child in self._named[name].children
                if child.tag == "DW_TAG_inheritance"]

    def virtuals(self, name):
        """Returns pairs (slot, signature) in the order of the table."""
        functions = self._functions(name)
        mangled = [function.text("DW_AT_linkage_name") for function in functions]
        demangled = subprocess.run(["c++filt"], input="\n".join(mangled), check=True, stdout=subprocess.PIPE,
                                   text=True, timeout=LONGEST_FILTER).stdout.splitlines()
        signatures = [shorter(self._type_name(self._target(function))) + " " + shorter(text).removeprefix(f"{name}::")
                      for function, text in zip(functions, demangled)]
        return sorted(zip((function.number("DW_AT_vtable_elem_location") for function in functions), signatures))

    def open_slots(self, name):
        """Returns the slots of the public and protected virtuals."""
        record = self._named[name]
        return {function.number("DW_AT_vtable_elem_location") for function in self._functions(name)
                if not self._is_private(record, function)}

    def is_versioned(self, name):
        """Returns true for an interface of plugins, which derives from abi::Versioned."""
        return name == "Versioned" or any(self.is_versioned(base) for base in self.bases(name) if base in self._named)

    def members(self, name):
        """Returns the names of the fields or enumerators in order, without private fields, and None for an unknown
        type."""
        entry = self._named.get(name)
        if entry is None or entry.tag == "DW_TAG_enumeration_type":
            return None if entry is None else [child.text("DW_AT_name") for child in entry.children
                                               if child.tag == "DW_TAG_enumerator"]
        return [field.text("DW_AT_name") for field in self._fields(entry) if not self._is_private(entry, field)]

    def field_type(self, name, field):
        found = [child for child in self._fields(self._named[name]) if child.text("DW_AT_name") == field]
        return shorter(self._type_name(self._target(found[0])))

    def is_lent_interface(self, name):
        """Returns True if the host implements the interface, and plugins only call the functions."""
        entry = self._named[name]
        return entry.tag in RECORDS and bool(self._functions(name)) and not self._is_versioned(name)

    def _is_versioned(self, name):
        return any(base == "Versioned" or base in self._named and self._is_versioned(base) for base in self.bases(name))

    def reachable(self, roots):
        """Returns the names of the types of jobq, reachable from the roots by arguments, results, fields and parameters
        of templates."""
        found, seen, left = set(), set(), [self._named[root] for root in roots]
        while left:
            entry = left.pop()
            if entry is None or id(entry) in seen:
                continue
            seen.add(id(entry))
            name = self._name(entry)
            if name == "Versioned" or entry.tag == "DW_TAG_namespace":
                continue
            if name:
                entry = self._named.get(name, entry)
                found.add(name)
            left.append(self._target(entry))
            left += self._neighbours(entry, bool(name))
        return found

    def _neighbours(self, entry, ours):
        """Returns the referenced entries of an entry. For a class of the standard library, returns the template
        arguments."""
        if entry.tag == "DW_TAG_subroutine_type":
            return [self._target(child) for child in entry.children]
        if entry.tag not in RECORDS:
            return []
        if not ours:
            named = re.findall(r"jobq::(?:abi::)?([\w:]+)", entry.text("DW_AT_name") or "")
            return [self._named[name] for name in named if name in self._named]
        near = [self._target(field) for field in self._fields(entry)]
        near += [self._target(child) for child in entry.children if child.tag == "DW_TAG_inheritance"]
        for function in self._functions(self._name(entry)) if self._name(entry) in self._named else []:
            near.append(self._target(function))
            near += [self._target(child) for child in function.children if child.tag == "DW_TAG_formal_parameter"]
        return near
