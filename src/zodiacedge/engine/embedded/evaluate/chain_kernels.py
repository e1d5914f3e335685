"""Kernels of relations as sets of bits: a set of terms per term, widened by compositions until none grows.

A relation has three matrices: the pairs that joins read, those of them that were not propagated yet, and
those that the node's rules derive. A summary has a bit for each word of a set that is not zero, so that a
sparse set is read by its members. A row that grew waits in a queue. What leaves the queue is a row with its
delta, which is joined with all facts so far: two rows that join meet when the later of them leaves the queue.
"""

from __future__ import annotations

from zodiacedge.engine.embedded.kernels.jit import count_bits, kernel, load32, lowest_bit, store32
from zodiacedge.engine.embedded.kernels.jit import load64 as get
from zodiacedge.engine.embedded.kernels.jit import store64 as put

# Bits per word of a set: words stay positive.
SET_BITS = 63

# A matrix: words per row, words of a row's summary, the addresses of both, and the number of rows.
M_WIDTH = 0
M_GROUPS = 1
M_SETS = 2
M_SUMMARIES = 3
M_ROWS = 4
MATRIX_WORDS = 5

# A relation: its matrices, the first two with summaries.
R_ALL = 0
R_DELTA = MATRIX_WORDS
R_DERIVED = 2 * MATRIX_WORDS  # the address of its sets only; 0 if all pairs are derived
R_QUEUED = 11  # address: per row, whether it waits in the queue
R_USES = 12  # the first use of its delta
R_USE_COUNT = 13
R_COUNT = 14  # the number of derived pairs
RELATION_WORDS = 15

# A use of a row's delta D: what is widened by what.
U_KIND = 0
U_TARGET = 1  # the relation that is widened
U_WITH = 2  # a matrix, or the starts of lists
U_LISTS = 3  # the targets of lists
U_WANTED = 4  # flags of the rows of the target that are needed; 0 if all are
U_BACK = 5  # JOIN_SETS: a matrix that gets the transposed pairs
USE_WORDS = 6

COPY = 0  # C[row] gets D
TRANSPOSE = 1  # C[x] gets the row, for each x in D
TO_LIST = 2  # C[x] gets D, for each x in the row's list
TO_SET = 3  # C[x] gets D, for each x in the row's set of a matrix
SET_TO_DELTA = 4  # C[x] gets the row's set of a matrix, for each x in D
LIST_TO_DELTA = 5  # C[x] gets the row's list, for each x in D
JOIN_SETS = 6  # C[row] gets the set of z of a matrix, for each z in D
JOIN_LISTS = 7  # C[row] gets the list of z, for each z in D

F_RELATIONS = 0
F_USES = 1
F_ROWS = 2
F_QUEUE = 3
F_FIRST = 4
F_WAITING = 5
F_PLACES = 6  # room in the queue
F_BUFFER = 7  # a matrix of two rows: a delta, and a set made from a list
F_NAMES = 8
F_WORK = 9  # words read
FRAME_WORDS = 10


@kernel
def row_sets(matrix: int, row: int) -> int:
    """Return the address of a row's set."""
    return get(matrix, M_SETS) + 8 * row * get(matrix, M_WIDTH)


@kernel
def row_summary(matrix: int, row: int) -> int:
    """Return the address of the summary of a row's set."""
    return get(matrix, M_SUMMARIES) + 8 * row * get(matrix, M_GROUPS)


@kernel
def is_empty(matrix: int, row: int) -> bool:
    """Whether a row's set is empty."""
    summary = row_summary(matrix, row)
    for group in range(get(matrix, M_GROUPS)):
        if get(summary, group):
            return False
    return True


@kernel
def set_member(matrix: int, row: int, member: int) -> None:
    """Add a member to a row's set."""
    word = member // SET_BITS
    sets = row_sets(matrix, row)
    put(sets, word, get(sets, word) | 1 << (member % SET_BITS))
    summary = row_summary(matrix, row)
    put(summary, word // SET_BITS, get(summary, word // SET_BITS) | 1 << (word % SET_BITS))


@kernel
def clear_row(matrix: int, row: int) -> None:
    """Make a row's set empty."""
    sets = row_sets(matrix, row)
    summary = row_summary(matrix, row)
    for group in range(get(matrix, M_GROUPS)):
        words = get(summary, group)
        while words:
            put(sets, group * SET_BITS + lowest_bit(words), 0)
            words &= words - 1
        put(summary, group, 0)


@kernel
def enqueue_row(frame: int, relation: int, row: int) -> None:
    """Append a row to the queue, unless it waits there already."""
    queued = get(relation, R_QUEUED)
    if load32(queued, row):
        return
    store32(queued, row, 1)
    places = get(frame, F_PLACES)
    waiting = get(frame, F_WAITING)
    place = get(frame, F_FIRST) + waiting
    number = (relation - get(frame, F_RELATIONS)) // (8 * RELATION_WORDS)
    store32(
        get(frame, F_QUEUE), place if place < places else place - places, number * get(frame, F_ROWS) + row
    )
    put(frame, F_WAITING, waiting + 1)


@kernel
def widen_row(frame: int, relation: int, row: int, given: int, from_row: int) -> None:
    """Add a set, a row of a matrix as wide as the relation's, to the set of a row."""
    sets = row_sets(given, from_row)
    summary = row_summary(given, from_row)
    everything = row_sets(relation, row)
    everything_summary = row_summary(relation, row)
    delta = row_sets(relation + 8 * R_DELTA, row)
    delta_summary = row_summary(relation + 8 * R_DELTA, row)
    derived = get(relation, R_DERIVED)
    separate = derived != 0
    derived += 8 * row * get(relation, M_WIDTH)
    more = 0
    work = 0
    grew = False
    for group in range(get(given, M_GROUPS)):
        words = get(summary, group)
        while words:
            bit = words & -words
            word = group * SET_BITS + lowest_bit(words)
            words ^= bit
            work += 1
            members = get(sets, word)
            if separate:
                old = get(derived, word)
                new = members & ~old
                if new:
                    put(derived, word, old | new)
                    more += count_bits(new)
            old = get(everything, word)
            new = members & ~old
            if new:
                grew = True
                put(everything, word, old | new)
                put(everything_summary, group, get(everything_summary, group) | bit)
                put(delta, word, get(delta, word) | new)
                put(delta_summary, group, get(delta_summary, group) | bit)
                if not separate:
                    more += count_bits(new)
    put(frame, F_WORK, get(frame, F_WORK) + work)
    if more:
        put(relation, R_COUNT, get(relation, R_COUNT) + more)
    if grew:
        enqueue_row(frame, relation, row)


@kernel
def widen_by_member(frame: int, relation: int, row: int, member: int) -> None:
    """Add one member to the set of a row."""
    word = member // SET_BITS
    bit = 1 << (member % SET_BITS)
    derived = get(relation, R_DERIVED)
    fresh = not get(row_sets(relation, row), word) & bit
    if derived:
        at = derived + 8 * row * get(relation, M_WIDTH)
        if not get(at, word) & bit:
            put(at, word, get(at, word) | bit)
            put(relation, R_COUNT, get(relation, R_COUNT) + 1)
    elif fresh:
        put(relation, R_COUNT, get(relation, R_COUNT) + 1)
    if fresh:
        set_member(relation, row, member)
        set_member(relation + 8 * R_DELTA, row, member)
        enqueue_row(frame, relation, row)


@kernel
def add_pairs(frame: int, relation: int, pairs: int, count: int) -> None:
    """Add pairs that the node reads and does not derive."""
    for n in range(count):
        row = load32(pairs, 2 * n)
        member = load32(pairs, 2 * n + 1)
        set_member(relation, row, member)
        set_member(relation + 8 * R_DELTA, row, member)
        enqueue_row(frame, relation, row)


@kernel
def compose_lists(frame: int, relation: int, count: int, pairs: int, starts: int, targets: int) -> None:
    """Add the composition of pairs with lists."""
    for n in range(count):
        row = load32(pairs, 2 * n)
        middle = load32(pairs, 2 * n + 1)
        for at in range(load32(starts, middle), load32(starts, middle + 1)):
            widen_by_member(frame, relation, row, load32(targets, at))


@kernel
def widen_members(
    frame: int, relation: int, members: int, of: int, given: int, from_row: int, wanted: int
) -> None:
    """Add a set to the set of each member of another set."""
    sets = row_sets(members, of)
    summary = row_summary(members, of)
    for group in range(get(members, M_GROUPS)):
        words = get(summary, group)
        while words:
            word = group * SET_BITS + lowest_bit(words)
            words &= words - 1
            bits = get(sets, word)
            while bits:
                row = word * SET_BITS + lowest_bit(bits)
                bits &= bits - 1
                if not wanted or load32(wanted, row):
                    widen_row(frame, relation, row, given, from_row)


@kernel
def join_delta(frame: int, use: int, row: int, buffer: int) -> None:
    """Add to the set of a row the sets, or lists, of each member of its delta."""
    target = get(use, U_TARGET)
    given = get(use, U_WITH)
    by_sets = get(use, U_KIND) == JOIN_SETS
    targets = get(use, U_LISTS)
    back = get(use, U_BACK)
    sets = row_sets(buffer, 0)
    summary = row_summary(buffer, 0)
    for group in range(get(buffer, M_GROUPS)):
        words = get(summary, group)
        while words:
            word = group * SET_BITS + lowest_bit(words)
            words &= words - 1
            bits = get(sets, word)
            while bits:
                middle = word * SET_BITS + lowest_bit(bits)
                bits &= bits - 1
                if by_sets:
                    set_member(back, middle, row)
                    widen_row(frame, target, row, given, middle)
                else:
                    for at in range(load32(given, middle), load32(given, middle + 1)):
                        widen_by_member(frame, target, row, load32(targets, at))


@kernel
def use_delta(frame: int, use: int, row: int, buffer: int) -> None:
    """Join the delta of a row, which is row 0 of the buffer, in one of its uses."""
    kind = get(use, U_KIND)
    target = get(use, U_TARGET)
    given = get(use, U_WITH)
    wanted = get(use, U_WANTED)
    if kind == COPY:
        widen_row(frame, target, row, buffer, 0)
    elif kind == TRANSPOSE:
        clear_row(buffer, 1)
        set_member(buffer, 1, row)
        widen_members(frame, target, buffer, 0, buffer, 1, wanted)
    elif kind == TO_LIST:
        targets = get(use, U_LISTS)
        for at in range(load32(given, row), load32(given, row + 1)):
            member = load32(targets, at)
            if not wanted or load32(wanted, member):
                widen_row(frame, target, member, buffer, 0)
    elif kind == TO_SET:
        if row < get(given, M_ROWS):
            widen_members(frame, target, given, row, buffer, 0, wanted)
    elif kind == SET_TO_DELTA:
        if not is_empty(given, row):
            widen_members(frame, target, buffer, 0, given, row, wanted)
    elif kind == LIST_TO_DELTA:
        targets = get(use, U_LISTS)
        begin = load32(given, row)
        end = load32(given, row + 1)
        if end > begin:
            clear_row(buffer, 1)
            for at in range(begin, end):
                set_member(buffer, 1, load32(targets, at))
            widen_members(frame, target, buffer, 0, buffer, 1, wanted)
    elif not wanted or load32(wanted, row):
        join_delta(frame, use, row, buffer)


@kernel
def propagate(frame: int, budget: int) -> bool:
    """Propagate the rows of the queue; return whether some wait when the budget is used up."""
    rows = get(frame, F_ROWS)
    queue = get(frame, F_QUEUE)
    places = get(frame, F_PLACES)
    buffer = get(frame, F_BUFFER)
    limit = get(frame, F_WORK) + budget
    while get(frame, F_WAITING) and get(frame, F_WORK) < limit:
        first = get(frame, F_FIRST)
        entry = load32(queue, first)
        put(frame, F_FIRST, first + 1 if first + 1 < places else 0)
        put(frame, F_WAITING, get(frame, F_WAITING) - 1)
        relation = get(frame, F_RELATIONS) + 8 * RELATION_WORDS * (entry // rows)
        row = entry % rows
        store32(get(relation, R_QUEUED), row, 0)
        take_delta(relation + 8 * R_DELTA, row, buffer)
        put(frame, F_WORK, get(frame, F_WORK) + get(buffer, M_GROUPS) + 1)
        first_use = get(frame, F_USES) + 8 * USE_WORDS * get(relation, R_USES)
        for n in range(get(relation, R_USE_COUNT)):
            use_delta(frame, first_use + 8 * USE_WORDS * n, row, buffer)
    return get(frame, F_WAITING) > 0


@kernel
def take_delta(matrix: int, row: int, buffer: int) -> None:
    """Move a row's set to the first row of the buffer."""
    clear_row(buffer, 0)
    sets = row_sets(matrix, row)
    summary = row_summary(matrix, row)
    out = row_sets(buffer, 0)
    out_summary = row_summary(buffer, 0)
    for group in range(get(matrix, M_GROUPS)):
        words = get(summary, group)
        put(out_summary, group, words)
        put(summary, group, 0)
        while words:
            word = group * SET_BITS + lowest_bit(words)
            words &= words - 1
            put(out, word, get(sets, word))
            put(sets, word, 0)


@kernel
def write_sets(frame: int, relation: int, row: int, last: int, out: int, count: int) -> int:
    """Write the derived pairs of the rows up to `last` as pairs of terms; return the new row count."""
    names = get(frame, F_NAMES)
    width = get(relation, M_WIDTH)
    derived = get(relation, R_DERIVED)
    sets = derived or get(relation, M_SETS)
    at = count
    while row < last:
        name = load32(names, row)
        here = sets + 8 * row * width
        summary = row_summary(relation, row)
        for group in range(get(relation, M_GROUPS)):
            words = get(summary, group)
            while words:
                word = group * SET_BITS + lowest_bit(words)
                words &= words - 1
                bits = get(here, word)
                while bits:
                    store32(out, 2 * at, name)
                    store32(out, 2 * at + 1, load32(names, word * SET_BITS + lowest_bit(bits)))
                    bits &= bits - 1
                    at += 1
        row += 1
    return at
