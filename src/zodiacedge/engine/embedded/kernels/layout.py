"""Offsets of fields in the descriptors that kernels read, in 64-bit words.

A table's descriptor is a record of `TABLE_WORDS` words; its indexes follow in the record. A step of a
rule, a source of an atom, and the machine's state are records too.
"""

# Words are signed, of 64 bits. Hashes stay within 63 bits, so that Python's unbounded integers and machine
# integers give the same numbers.
WORD_MASK = 0x7FFFFFFFFFFFFFFF

# A table: rows of 32-bit term ids, in row-major order.
TABLE_WORDS = 204
T_ROWS = 0  # address of the rows
T_COUNT = 1  # rows in use
T_CAPACITY = 2  # rows that fit
T_ARITY = 3
T_SLOTS = 4  # address of the hash set's slots (row + 1, or 0 if free); 0 where there is no hash set
T_SLOT_COUNT = 5
T_LOW = 6  # first row of the last round's delta
T_HIGH = 7  # first row after it
T_INDEXES = 8  # number of indexes that follow
T_BITS = 9  # address of a bitmap of terms or pairs of terms, while a node fills the table; else 0
T_TERMS = 10  # number of terms in the bitmap
T_SHARED = 11  # whether two threads set bits in the bitmap
T_FIRST_INDEX = 12
INDEX_WORDS = 6
MOST_INDEXES = 32

# A set of columns: a bit for each of the first columns, or all.
WHOLE = -1
MASK_COLUMNS = 60

# A hash index: a slot per key (the columns of the mask), and a chain of the rows with that key, newest first.
I_MASK = 0
I_HEADS = 1  # address of the slots (first row of a chain + 1, or 0 if free)
I_HEAD_COUNT = 2
I_USED = 3
I_NEXT = 4  # address: the next row of the chain, or -1
I_PREVIOUS = 5  # address: the row before it, or -1; 0 until a row is deleted

SHORT_CHAIN = 8  # longest chain that is quicker to walk than a lookup in the hash set

# Highest load factor of a hash set or an index.
FULL_NUMERATOR = 3
FULL_DENOMINATOR = 4

# The dictionary.
D_KINDS = 0
D_PAYLOADS = 1
D_LENGTHS = 2
D_COUNT = 3
D_CAPACITY = 4
D_SLOTS = 5
D_SLOT_COUNT = 6
D_TEXT = 7  # address of the arena of texts
D_TEXT_END = 8
D_TEXT_CAPACITY = 9
D_FREE = 10  # number of free ids
D_HOLES = (
    11  # address of the first free id + 1, or 0, of each class of holes; the last free id of each follows
)
D_WASTE = 12  # bytes of the arena that no term uses
D_MARKS = 13  # address of a byte per id, set where the term is in use; 0 unless terms are reclaimed
D_ROOTS = 14  # for each class of similar texts: 1 + the last term whose text is whole, or 0
ROOTS = 64
DICTIONARY_WORDS = D_ROOTS + ROOTS

# The payload of a text: where its own bytes are, and how many first and last bytes are those of its root,
# another text. The root's number follows the own bytes; a text without a root is whole.
OFFSET_BITS = 40
SHARED_BITS = 10
ROOT_BYTES = 4
LEAST_SAVED = 2  # units of the arena that sharing must save, because a root stays as long as the text

# A text takes whole units of the arena. A free id of a class keeps a hole of so many units for a text.
TEXT_UNIT = 8
HOLE_CLASSES = 129  # class 0 has no hole
# The payload of a free id: the place of its hole, shifted by these bits, and its class.
HOLE_BITS = 8

# Kinds of terms, in no particular order. A free id has the length field as the link to the next one.
K_FREE = -1
K_IRI = 0
K_BLANK = 1
K_STRING = 2
K_TAGGED = 3
K_OTHER = 4
K_INTEGER = 5
K_DECIMAL = 6
K_DOUBLE = 7
K_FLOAT = 8
K_BOOLEAN = 9
K_MOMENT = 10
K_DATE = 11
K_DURATION = 12

# A variant of a rule: a run of steps, in the first round or in all later ones.
VARIANT_WORDS = 4
V_FIRST = 0  # its first step
V_WHEN = 1  # FIRST_ROUND or LATER_ROUNDS
V_LENGTH = 2  # number of steps; the last step emits
V_RULE = 3  # the rule's number, for counts
FIRST_ROUND = 0
LATER_ROUNDS = 1

# A step.
STEP_WORDS = 9
P_OP = 0
P_ARITY = 1
P_SPEC = 2  # offset of its columns in `spec`
P_SOURCES = 3  # atoms: the first source
P_SOURCE_COUNT = 4
P_ONCE = 5  # atoms: whether one match is enough
P_FUSED = 6  # the last atom of a rule: whether it may write heads itself
P_BACK = 3  # emit: the step whose next match may give another head, or -1
P_TARGET = 7  # emit: the table's record
P_ORIGINS = 7  # a fused atom: offset in `spec` of the origins of the head's columns
P_PAIRS = 8  # atoms: whether every source is a table of two columns whose access checks all bound columns
# A comparison or a binding has postfix code in `spec`, the left side before the right one.
P_LEFT = 1
P_RIGHT = 3
P_OPERATOR = 4
P_REGISTER = 4
P_CHECKS = 3  # a binding: whether the register is bound already, so that the value must equal it

# The origin of a value: the column of the fused atom or -1, then a mode and a term or a register.
ORIGIN_WORDS = 3

FUSED = 1  # an atom, then the head
FUSED_UNEQUAL = 2  # an atom, an inequality of two plain operands, then the head

GATHERED = 3  # an atom, then a gather of one of its columns
JOINED = 4  # a row of a group, an atom, then a gather of one of its columns

PAIRS = 1  # an atom of two columns
PAIRS_TO_PAIRS = 2  # a fused one, to a head of two columns

OP_ATOM = 1
OP_ABSENT = 2
OP_COMPARE = 3
OP_BIND = 4
OP_EMIT = 5
OP_NEW = 6  # goes on only if the head, whose columns are all bound, has no bit in the target yet
# The heads of a product (`plan.product`): a group of the delta, tests, then two parts that end with a gather.
OP_GROUP = 7  # the rows of the delta that have one term in their first column
OP_ROW = 8  # a row of the group
OP_PARTS = 9  # begins the first part
OP_GATHER = 10  # the end of the first part: a term of a head; the second part begins when it is complete
OP_PRODUCT = 11  # the end of the second part: another term, then all pairs of the two
P_FILTER = 5  # a group: the address of a bit per term, clear where a group gives no heads, or 0
P_SECOND = 1  # parts: the first step of the second part
P_SWAPPED = 3  # parts: whether the first part binds the second column of the head
GATHERED_TERMS = 4096  # of each part, before their pairs are written

# A column of an atom or of a head: a mode and a register or a term.
SPEC_WORDS = 2
MODE_TERM = 0  # equals a constant
MODE_REGISTER = 1  # equals a register
MODE_OUT = 2  # is written to a register
MODE_ANY = 3  # is ignored

# A source of an atom: a table, or a range of its rows.
SOURCE_WORDS = 8
S_TABLE = 0  # the table's record
S_RANGE = 1
S_ACCESS = 2
S_INDEX = 3  # which index, for BY_INDEX
S_MASK = 4  # the columns that the access checks
S_CLASS = 5  # the class of a table of one class's members, or -1
S_EXCLUDED = 6  # the first entry of `excluded`: a table's record and its class
S_EXCLUDED_COUNT = 7
EXCLUDED_WORDS = 2

RANGE_DELTA = 1  # rows of the last round
RANGE_OLD = 2  # rows before it
RANGE_NEW = 3  # both
BY_SCAN = 0
BY_INDEX = 1
BY_ROW = 2
BY_BIT = 3  # as BY_ROW, by the bitmap of a table that the node fills; rows of this round count too

# The machine's state, kept between calls.
STATE_WORDS = 24
M_VARIANT = 0
M_STARTED = 1  # whether the variant is under way
M_DEPTH = 2
M_FORWARD = 3
M_POISON = 4  # 1 + the depth of the first step that had no value, or 0
M_ROUND = 5
M_FILLED = 6  # rows in the output buffer
M_TARGET = 7  # the table they are for
M_BUDGET = 8
M_DERIVED = 9  # heads derived, duplicates included
M_RULE = 10  # the rule of the variant under way
M_PASS_ERRORS = 11  # bindings without a value in this pass of the variant
M_PENDING = 12  # whether the variant met a value that the host must compute first
M_VISITED = 13  # rows that the last fused atom visited, or pairs that the last product wrote
M_GROUP = 14  # the first row of the group
M_GATHERED = 15  # the terms of the first part that are gathered, and of the second
M_LAST = 17  # whether these are the last ones of the first part
M_SWAPPED = 18
M_PAIR = 19  # the next pair to write: its position in the first column's terms, and in the second's

# The machine's frame: addresses of its programs and buffers.
FRAME_WORDS = 20
F_VARIANTS = 0
F_VARIANT_COUNT = 1
F_STEPS = 2
F_SPEC = 3
F_SOURCES = 4
F_EXCLUDED = 5
F_OWN = 6  # the records of the tables that the node derives into
F_OWN_COUNT = 7
F_REGISTERS = 8
F_CURSORS = 9
F_SCRATCH = 10
F_OUT = 11
F_SORTED = 12
F_OUT_WORDS = 13  # 32-bit words in each of the two buffers
F_DICTIONARY = 14
F_ERRORS = 15  # per rule: the number of bindings without a value, and the registers of the first
F_ERROR_WORDS = 16
F_HOSTS = 17  # the host functions
F_STATE = 18
F_GATHERED = 19  # the gathered terms of both parts

# A host function: its results so far, by arguments, and the arguments queued for it.
HOST_WORDS = 4
H_KNOWN = 0  # a table: arguments, then the result or -1
H_WANTED = 1  # a table: arguments
H_ARITY = 2

# Terms that must fit in the dictionary before an expression is evaluated.
SPARE_TERMS = 128
SCRATCH_WORDS = 1024
STACK = 512  # offset of the stack of expressions in it
MOST_COLUMNS = 128

# Why the machine stopped.
DONE = 0
PAUSED = 1
NEEDS_ROOM = 2
NEEDS_TERMS = 3
NEEDS_HOST = 4

# The output buffer: rows are inserted in batches, partitioned by slot once the hash set outgrows the cache.
SLOTS_IN_CACHE = 65536
ROWS_PER_PARTITION = 64
MOST_PARTITIONS = 256
SMALL_OUT = 4096
SHARE_OF_TABLE = 4
SORTED_TERMS = 4  # pairs are sorted if there are at most so many terms for each
MOST_VISITS = 1_000_000  # rows that a fused atom visits before the machine checks its budget

# Expressions: postfix code on a small stack of values.
X_TERM = 1  # push a term
X_REGISTER = 2  # push the term in a register
X_NEGATE = 3
X_ADD = 4
X_SUBTRACT = 5
X_MULTIPLY = 6
X_DIVIDE = 7
X_FLOOR_DIVIDE = 8
X_REMAINDER = 9
X_POWER = 10
X_ABS = 11
X_ROUND = 12
X_FLOOR = 13
X_CEIL = 14
X_SQRT = 15
X_EXP = 16
X_LN = 17
X_LOG10 = 18
X_MIN = 19
X_MAX = 20
X_HOST = 21  # look up the result of a host function
X_JUMP = 22  # skip so many operations
X_UNLESS = 23  # drop a condition that is true; else skip so many operations
X_COALESCE = 24  # drop an error; else skip so many operations
EXPRESSION_WORDS = 2

# The type of a value on the stack.
IS_ERROR = 0
IS_INTEGER = 1
IS_DOUBLE = 2
IS_TERM = 3
IS_PENDING = 4  # the host has not computed it yet
IS_MOMENT = 5
IS_DURATION = 6

# Comparisons.
EQUAL = 0
UNEQUAL = 1
LESS = 2
AT_MOST = 3
GREATER = 4
AT_LEAST = 5

# The result of a comparison.
FAILS = 0
HOLDS = 1
NO_ORDER = 2
PENDING = 3
