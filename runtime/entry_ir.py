"""The LLVM code of the op entries: small elementwise ops on Tensors without any Python.

`add_entries(module, layout, strip, recover, fresh, guard)` adds the C functions `unary`, `binary`, `reflected` (binary
with its operands swapped), `total` (the reduction of all elements) and `product` (of two matrices), all of the kind
METH_FASTCALL | METH_KEYWORDS. Each hands its operands to a function of the module's own that does the op. This looks at
what it was given; as soon as anything is not as the fast path needs it, it calls the Python function in the slot `fn`
of the entry's `self` with the same operands.

The same functions answer guards that have an entry in their slot `direct` (`direct_unary` and so on), and operators,
where CPython calls the C functions of a class: `unary_operator(x, self)`, `binary_operator(x, y, self)`,
`product_operator(x, y, self)` and `comparison(x, y, number, selves)`. How a class comes to call these is said in
`operator_slots.py`.

Nothing is changed before the result exists, so leaving is possible at every step. Constants of floating type would
need relocations; tests on floats are made on their bits.
"""

from __future__ import annotations

from llvmlite import ir

from .emit import Code, Glue, f32, f64, i32, i64, ptr, void
from .native_layout import CONTIGUOUS_ALIGNED, KIND, TABLE

__all__ = ["add_entries"]

_F32_INFINITY, _F32_MAGNITUDE = 0x7F800000, 0x7FFFFFFF
_F64_INFINITY, _F64_MAGNITUDE = 0x7FF0000000000000, 0x7FFFFFFFFFFFFFFF
_LOCKED = 1 << 15  # elements that a kernel may have while other threads of the interpreter wait
_SHORT_ROW = 8  # elements; fewer are not worth a call
_EXACT = {"f32": 1 << 24, "f64": 1 << 53}  # integers up to these convert without rounding


def add_entries(module: ir.Module, layout: dict[str, int], strip: ir.Function, recover: ir.Function,
                fresh: ir.Function, guard: ir.Function) -> None:
    """Adds the entries, and the kernel their trial uses, to the module."""
    shared = strip, recover, fresh
    unary, total = (_OpCode(module, layout, name, 1, *shared) for name in ("run_unary", "run_total"))
    binary, product = (_OpCode(module, layout, name, 2, *shared) for name in ("run_binary", "run_product"))
    unary.unary()
    total.total()
    binary.binary()
    product.product()
    other = _other(module, layout, recover)
    for name, code in (("unary", unary), ("total", total), ("binary", binary), ("product", product)):
        _entry(module, layout, name, code.fn, other)
        _entry(module, layout, f"direct_{name}", code.fn, guard, direct=True)
    _entry(module, layout, "reflected", binary.fn, other, swapped=True)
    for name, code in (("unary_operator", unary), ("binary_operator", binary), ("product_operator", product)):
        c = Code(module, name, ptr, [ptr] * len(code.fn.args))
        c.ret(c.call(code.fn, c.fn.args, tail=True))
    c = Code(module, "comparison", ptr, [ptr, ptr, i32, ptr])
    x, y, number, selves = c.fn.args
    c.ret(c.call(binary.fn, [x, y, c.load(c.word(selves, c.zext(number, i64)), typ=ptr)], tail=True))
    _trial_kernel(module, layout)


def _entry(module: ir.Module, layout: dict[str, int], name: str, code: ir.Function, other: ir.Function,
           swapped: bool = False, direct: bool = False) -> None:
    """A builtin's C function: `code` on its arguments, where there are as many as `code` has operands, all by position.

    Args:
        other: the function for all other calls.
        swapped: whether the operands change places.
        direct: whether the builtin is a guard with the entry in its slot `direct`.
    """
    c = Glue(module, layout, name, ptr, [ptr, ptr, i64, ptr])
    owner, args, count, names = c.fn.args
    arity, rest = len(code.args) - 1, c.fn.append_basic_block("rest")
    c.unless(c.and_(c.same(count, i64(arity)), c.is_null(names)), rest)
    operands = [c.get(args, 8 * index) for index in range(arity)]
    c.ret(c.call(code, [*(operands[::-1] if swapped else operands), c.slot(owner, "bound.direct") if direct else owner],
                 tail=True))
    c.position_at_end(rest)
    c.ret(c.call(other, c.fn.args, tail=True))


def _other(module: ir.Module, layout: dict[str, int], recover: ir.Function) -> ir.Function:
    """`other(self, args, nargs, kwnames)`: the Python function of an entry's `self`."""
    c = Glue(module, layout, "other", ptr, [ptr, ptr, i64, ptr], internal=True)
    owner, args, count, names = c.fn.args
    c.context = c.get(c.raw(owner), 0)
    raised = c.fn.append_basic_block("raised")
    result = c.api("PyObject_Vectorcall", ptr, c.slot(owner, "bound.fn"), args, count, names)
    c.leave_if(c.is_null(result), raised)
    c.ret(result)
    c.position_at_end(raised)
    c.ret(c.call(recover, [c.context, owner, args, count, names, i64(-1)]))
    return c.fn


class _ArrayFields:
    """One operand that is an array: values of the function that hold its fields."""

    def __init__(self, data: ir.Value, rank: ir.Value, dims: ir.Value, descr: ir.Value, index: ir.Value):
        self.data, self.rank, self.dims, self.descr, self.index = data, rank, dims, descr, index


class _OpCode(Glue):
    """What entries of one kind do: `name(operands, self)`; `self.slow` is the block that calls the Python function."""

    def __init__(self, module: ir.Module, layout: dict[str, int], name: str, arity: int, strip: ir.Function,
                 recover: ir.Function, fresh: ir.Function):
        super().__init__(module, layout, name, ptr, [ptr] * (arity + 1), internal=True)
        *self.given, self.owner = self.fn.args
        self.strip, self.recover, self.fresh = strip, recover, fresh
        raw = self.raw(self.owner)
        self.context = self.get(raw, 0)
        self.table = self.get(raw, 8)
        # Allocated in the first block, so that they are part of the fixed frame.
        self.kernel_args = self.room(i64, 7)
        self.scalar = self.room(i64)
        self.overflow = self.room(i32)
        self.failed = self.room(i64)
        self.state = self.room(ptr)
        self.operands = self.room(ptr, 3)
        self.shape = self.room(i64, 2)
        self.slow = self.fn.append_basic_block("slow")
        self.fail = self.fn.append_basic_block("fail")

    def unary(self) -> None:
        self._enter()
        x, = self.given
        self.unless(self.same(self._type(x), self.shared("tensor")), self.slow)
        array = self._array(x)
        n = self._elements(array.rank, array.dims, None)
        row = self._row(array.index)
        self._compute(row, self.get(row, TABLE["v"]), n, array, [array.data], [x])
        self._leave()

    def total(self) -> None:
        """One output of rank 0 from all elements, by a kernel of `codegen/reduce.py: rows` over one chunk."""
        self._enter()
        x, = self.given
        self.unless(self.same(self._type(x), self.shared("tensor")), self.slow)
        array = self._array(x)
        n = self._elements(array.rank, array.dims, None)
        self.leave_if(self.same(n, i64(0)), self.slow)
        row = self._row(array.index)
        scalar = _ArrayFields(array.data, i32(0), array.dims, array.descr, array.index)
        zero = i64(0)  # the first element's number; then the count; then steps between outputs, of which there is one
        self._compute(row, self.get(row, TABLE["v"]), i64(1), scalar, [array.data, zero, n, zero, zero, zero], [x])
        self._leave()

    def binary(self) -> None:
        self._enter()
        x, y = self.given
        arrays, left, right, other = (self.fn.append_basic_block(n) for n in ("arrays", "left", "right", "other"))
        tensor = self.shared("tensor")
        self.leave_if(self.same(self._type(y), tensor), other)
        self.unless(self.same(self._type(x), tensor), self.slow)
        self.branch(right)
        self.position_at_end(other)
        self.cbranch(self.same(self._type(x), tensor), arrays, left)

        self.position_at_end(right)  # tensor op Python number
        self._with_number(x, y, TABLE["vs"], tensor_first=True)
        self.position_at_end(left)  # Python number op tensor
        self._with_number(y, x, TABLE["sv"], tensor_first=False)
        self.position_at_end(arrays)
        self._two_arrays(x, y)
        self._leave()

    def product(self) -> None:
        """Two matrices, by a kernel that takes their addresses and sizes; the limit is one of multiplications.

        It is a 16th for one row or column, which waits for memory: kernels of their own and threads read that faster.
        """
        self._enter()
        x, y = self.given
        for operand in (x, y):
            self.unless(self.same(self._type(operand), self.shared("tensor")), self.slow)
        a, b = self._array(x), self._array(y)
        self.unless(self.same(a.descr, b.descr), self.slow)
        for array in (a, b):
            self.unless(self.same(array.rank, i32(2)), self.slow)
        (m, inner), (k, n) = ([self.load(self.word(array.dims, i), typ=i64) for i in (0, 1)] for array in (a, b))
        self.unless(self.same(inner, k), self.slow)
        limit = self.get(self.table, TABLE["limit"], i64)
        for size in (m, k, n):
            self._between(size, i64(1), limit)
        columns = self.mul(m, n)
        self._between(columns, i64(1), limit)
        thin = self.or_(self.same(m, i64(1)), self.same(n, i64(1)))
        self._between(self.mul(columns, k), i64(1), self.select(thin, self.lshr(limit, i64(4)), limit))
        for index, size in enumerate((m, n)):
            self.store(size, self.word(self.shape, index))
        row = self._row(a.index)
        result = _ArrayFields(a.data, i32(2), self.shape, a.descr, a.index)
        self._compute(row, self.get(row, TABLE["vv"]), i64(1), result, [a.data, b.data, m, n, k], [x, y])
        self._leave()

    def _enter(self) -> None:
        self.unless(self.same(self.shared("tracers", i64), i64(0)), self.slow)

    def _leave(self) -> None:
        """The ways out other than success: the Python function, and errors."""
        self.position_at_end(self.slow)
        for index, operand in enumerate(self.given):
            self.put(operand, self.operands, 8 * index)
        count, names = i64(len(self.given)), ptr(None)
        result = self.api("PyObject_Vectorcall", ptr, self.slot(self.owner, "bound.fn"), self.operands, count, names)
        raised = self.fn.append_basic_block("raised")
        self.leave_if(self.is_null(result), raised)
        self.ret(result)
        self.position_at_end(raised)
        self.ret(self.call(self.recover, [self.context, self.owner, self.operands, count, names, i64(-1)]))
        self.position_at_end(self.fail)
        self.call(self.strip, [self.context, self.owner, i64(-1)])
        self.ret(ptr(None))

    def _type(self, thing: ir.Value) -> ir.Value:
        return self.get(thing, self.layout["object.type"])

    def _array(self, tensor: ir.Value) -> _ArrayFields:
        """The array of a Tensor, or to the slow path unless it is a plain one of native type."""
        array = self.get(tensor, self.shared("tensor.array", i64))
        self.leave_if(self.is_null(array), self.slow)
        self.unless(self.same(self._type(array), self.shared("ndarray")), self.slow)
        field = self.layout
        flags = self.and_(self.get(array, field["array.flags"], i32), i32(CONTIGUOUS_ALIGNED))
        self.unless(self.same(flags, i32(CONTIGUOUS_ALIGNED)), self.slow)
        descr = self.get(array, field["array.descr"])
        number = self.get(descr, field["descr.number"], i32)
        has_row = self.icmp_unsigned("<", number, i32(TABLE["extra"]))
        index = self.zext(self.select(has_row, number, i32(TABLE["extra"])), i64)
        canonical = self.load(self.word(self.at(self.context, 8 * field["context.descrs"]), index), typ=ptr)
        self.unless(self.same(canonical, descr), self.slow)
        return _ArrayFields(self.get(array, field["array.data"], i64), self.get(array, field["array.rank"], i32),
                      self.get(array, field["array.dims"]), descr, index)

    def _elements(self, rank: ir.Value, dims: ir.Value, equal_to: ir.Value | None) -> ir.Value:
        """The number of elements; to the slow path above the limit, or unless the dims are those of `equal_to`."""
        limit = self.get(self.table, TABLE["limit"], i64)
        count, before = self.sext(rank, i64), self.block
        test, inside, after = (self.fn.append_basic_block() for _ in range(3))
        self.branch(test)
        self.position_at_end(test)
        index, total = self.phi(i64), self.phi(i64)
        index.add_incoming(i64(0), before)
        total.add_incoming(i64(1), before)
        self.cbranch(self.icmp_signed("<", index, count), inside, after)
        self.position_at_end(inside)
        dim = self.load(self.word(dims, index), typ=i64)
        if equal_to is not None:
            self.unless(self.same(dim, self.load(self.word(equal_to, index), typ=i64)), self.slow)
        product = self.mul(total, dim)  # NumPy makes no array whose size overflows
        self.leave_if(self.icmp_signed(">", product, limit), self.slow)
        index.add_incoming(self.add(index, i64(1)), self.block)
        total.add_incoming(product, self.block)
        self.branch(test)
        self.position_at_end(after)
        return total

    def _row(self, index: ir.Value) -> ir.Value:
        """The part of the table for the type number `index`."""
        return self.at(self.table, self.add(self.mul(index, i64(TABLE["row"])), i64(TABLE["rows"])))

    def _two_arrays(self, x: ir.Value, y: ir.Value) -> None:
        a, b = self._array(x), self._array(y)
        self.unless(self.same(a.descr, b.descr), self.slow)
        row = self._row(a.index)
        same, different, left, right = (self.fn.append_basic_block() for _ in range(4))
        self.cbranch(self.same(a.rank, b.rank), same, different)
        self.position_at_end(different)
        self.leave_if(self.same(b.rank, i32(0)), left)
        self.leave_if(self.same(a.rank, i32(0)), right)
        self._with_row(row, a, b, [x, y])
        for block, shape, other, mask in ((same, a, b, "vv"), (left, a, None, "vs"), (right, b, None, "sv")):
            self.position_at_end(block)
            n = self._elements(shape.rank, shape.dims, other.dims if other else None)
            self._compute(row, self.get(row, TABLE[mask]), n, shape, [a.data, b.data], [x, y])

    def _with_row(self, row: ir.Value, a: _ArrayFields, b: _ArrayFields, operands: list[ir.Value]) -> None:
        """The op on two arrays of which one's dims are the last ones of the other's: as a bias is added to rows."""
        wide, narrow = (self.fn.append_basic_block() for _ in range(2))
        self.cbranch(self.icmp_signed(">", a.rank, b.rank), wide, narrow)
        for block, whole, part, first in ((wide, a, b, True), (narrow, b, a, False)):
            self.position_at_end(block)
            missing = self.sext(self.sub(whole.rank, part.rank), i64)
            last = _ArrayFields(whole.data, part.rank, self.word(whole.dims, missing), whole.descr, whole.index)
            length = self._elements(last.rank, last.dims, part.dims)
            n = self._elements(whole.rank, whole.dims, None)
            # A call for each row pays for rows of some length; the Python function knows better for others.
            self._between(length, i64(_SHORT_ROW), n)
            self._compute(row, self.get(row, TABLE["vv"]), n, whole, [a.data, b.data], operands, (length, first))

    def _with_number(self, tensor: ir.Value, number: ir.Value, mask: int, tensor_first: bool) -> None:
        """The op on a Tensor and a Python number, when the Tensor's type holds the number exactly."""
        self.unless(self.same(self.shared("recorders", i64), i64(0)), self.slow)
        array = self._array(tensor)
        kind = self.load(self.word(self.at(self.context, 8 * self.layout["context.kinds"]), array.index), typ=i64)
        self._convert(number, kind, array.index)
        n = self._elements(array.rank, array.dims, None)
        row, place = self._row(array.index), self.ptrtoint(self.scalar, i64)
        data = [array.data, place] if tensor_first else [place, array.data]
        self._compute(row, self.get(row, mask), n, array, data, [])

    def _convert(self, number: ir.Value, kind: ir.Value, index: ir.Value) -> None:
        """Stores the exact float, int or bool `number` as an element of the type of `kind`, or to the slow path."""
        done, is_float, is_int, is_bool = (self.fn.append_basic_block(n) for n in ("done", "float", "int", "bool"))
        python_type = self._type(number)
        self.leave_if(self.same(python_type, self.shared("float")), is_float)
        self.leave_if(self.same(python_type, self.shared("int")), is_int)
        self.cbranch(self.same(python_type, self.shared("bool")), is_bool, self.slow)

        self.position_at_end(is_float)
        value = self.get(number, self.layout["float.value"], f64)
        self._float(value, kind, done)
        self.position_at_end(is_bool)
        self.unless(self.same(kind, i64(KIND["bool"])), self.slow)
        self.store(self.zext(self.same(number, self.shared("true")), i64), self.scalar)
        self.branch(done)
        self.position_at_end(is_int)
        self._integer(number, kind, index, done)
        self.position_at_end(done)

    def _float(self, value: ir.Value, kind: ir.Value, done: ir.Block) -> None:
        single, double = (self.fn.append_basic_block() for _ in range(2))
        self.leave_if(self.same(kind, i64(KIND["f32"])), single)
        self.cbranch(self.same(kind, i64(KIND["f64"])), double, self.slow)
        self.position_at_end(double)
        self.store(value, self.scalar)
        self.branch(done)
        self.position_at_end(single)
        rounded = self.fptrunc(value, f32)
        magnitude = self.and_(self.bitcast(rounded, i32), i32(_F32_MAGNITUDE))
        wide = self.and_(self.bitcast(value, i64), i64(_F64_MAGNITUDE))
        overflows = self.and_(self.same(magnitude, i32(_F32_INFINITY)), self.not_(self.same(wide, i64(_F64_INFINITY))))
        self.leave_if(overflows, self.slow)
        self.store(rounded, self.scalar)
        self.branch(done)

    def _integer(self, number: ir.Value, kind: ir.Value, index: ir.Value, done: ir.Block) -> None:
        value = self.api("PyLong_AsLongLongAndOverflow", i64, number, self.overflow)
        self.unless(self.same(self.load(self.overflow, typ=i32), i32(0)), self.slow)
        for name, floating in (("f32", f32), ("f64", f64)):
            here, rest = (self.fn.append_basic_block() for _ in range(2))
            self.cbranch(self.same(kind, i64(KIND[name])), here, rest)
            self.position_at_end(here)
            self._between(value, i64(-_EXACT[name]), i64(_EXACT[name]))
            self.store(self.sitofp(value, floating), self.scalar)
            self.branch(done)
            self.position_at_end(rest)
        self.unless(self.same(kind, i64(KIND["integer"])), self.slow)
        least, most = (self.load(self.word(self.at(self.context, 8 * self.layout[f"context.{n}"]), index), typ=i64)
                       for n in ("least", "most"))
        self._between(value, least, most)
        self.store(value, self.scalar)  # little-endian: the low bytes come first
        self.branch(done)

    def _between(self, value: ir.Value, least: ir.Value, most: ir.Value) -> None:
        self.unless(self.icmp_signed(">=", value, least), self.slow)
        self.unless(self.icmp_signed("<=", value, most), self.slow)

    def _compute(self, row: ir.Value, kernel: ir.Value, n: ir.Value, shape: _ArrayFields, data: list[ir.Value],
                 operands: list[ir.Value], rows: tuple[ir.Value, bool] | None = None) -> None:
        """Makes the result like `shape`, runs the kernel and returns the new Tensor from the function.

        Args:
            rows: if not all at once, the length of rows to run it on, and whether the first operand has many.
        """
        self.leave_if(self.is_null(kernel), self.slow)
        descr = self.get(row, TABLE["out"])
        out = self.call(self.fresh, [self.context, descr, self.sext(shape.rank, i64), shape.dims,
                                     self.get(descr, self.layout["descr.size"], i64)])
        self.leave_if(self.is_null(out), self.fail)
        for index, value in enumerate([self.get(out, self.layout["array.data"], i64), *data]):
            self.store(value, self.word(self.kernel_args, index))
        self.store(ptr(None), self.state)
        with self.if_then(self.icmp_signed(">", n, i64(_LOCKED)), likely=False):
            self.store(self.api("PyEval_SaveThread", ptr), self.state)
        if rows is None:
            status = self.to(kernel, i64, i64(0), n, self.kernel_args)
        else:
            status = self._by_rows(kernel, n, (descr, shape.descr), *rows)
        state = self.load(self.state, typ=ptr)
        with self.if_then(self.not_(self.is_null(state)), likely=False):
            self.api("PyEval_RestoreThread", void, state)
        with self.if_then(self.not_(self.same(status, i64(0))), likely=False):
            self.release(out)  # the Python function finds the failing check and raises its error
            self.branch(self.slow)
        result = self.api("tensor.alloc", ptr, self.shared("tensor"), i64(0))
        with self.if_then(self.is_null(result), likely=False):
            self.release(out)
            self.branch(self.fail)
        self.put(out, result, self.shared("tensor.array", i64))
        if operands:
            self._record(operands, result)
        self.ret(result)

    def _by_rows(self, kernel: ir.Value, n: ir.Value, descrs: tuple[ir.Value, ir.Value], length: ir.Value,
                 first: bool) -> ir.Value:
        """Runs a kernel on each row of its result and of one operand, with all of the other; not 0 if one failed."""
        self.store(i64(0), self.failed)
        steps = [self.mul(length, self.get(d, self.layout["descr.size"], i64)) for d in descrs]

        def run_row(_: ir.Value) -> None:
            status = self.to(kernel, i64, i64(0), length, self.kernel_args)
            self.store(self.or_(self.load(self.failed, typ=i64), status), self.failed)
            for index, step in zip((0, 1 if first else 2), steps, strict=True):
                place = self.word(self.kernel_args, i64(index))
                self.store(self.add(self.load(place, typ=i64), step), place)

        self.each(self.sdiv(n, length), run_row)
        return self.load(self.failed, typ=i64)

    def _record(self, operands: list[ir.Value], result: ir.Value) -> None:
        """Tells the recorder of the op while there is one."""
        plain = self.fn.append_basic_block()
        self.leave_if(self.same(self.shared("recorders", i64), i64(0)), plain)
        undo = self.fn.append_basic_block()
        inputs = self.api("PyTuple_New", ptr, i64(len(operands)))
        self.leave_if(self.is_null(inputs), undo)
        for index, operand in enumerate(operands):
            self.api("Py_IncRef", void, operand)
            self.put(operand, inputs, self.layout["tuple.items"] + 8 * index)
        for index, value in enumerate((self.slot(self.owner, "bound.op"), inputs, result)):
            self.put(value, self.operands, 8 * index)
        answer = self.api("PyObject_Vectorcall", ptr, self.shared("recorder"), self.operands, i64(3), ptr(None))
        self.release(inputs)
        self.leave_if(self.is_null(answer), undo)
        self.release(answer)
        self.branch(plain)
        self.position_at_end(undo)
        self.release(result)
        self.branch(self.fail)
        self.position_at_end(plain)


def _trial_kernel(module: ir.Module, layout: dict[str, int]) -> None:
    """A contiguous "vv" kernel that adds int64 numbers, and fails where start is not 0: for the trial of an entry."""
    c = Glue(module, layout, "trial", i64, [i64, i64, ptr])
    start, stop, args = c.fn.args
    out, x, y = (c.get(args, 8 * i) for i in range(3))

    def add(i: ir.Value) -> None:
        c.store(c.add(c.load(c.word(x, i), typ=i64), c.load(c.word(y, i), typ=i64)), c.word(out, i))

    c.each(stop, add)
    c.ret(start)
