/* A module for Python with the kernels that `kernels.o` has compiled: entries only, called with words.

   `kernels.h`, which `link.py` writes beside this file, has a line for each kernel: its number, name, number of
   arguments, and what it returns ('w' a word, 'b' a truth value, 'n' nothing). A kernel's code takes the
   addresses of its result and of what it raises, then its arguments, and returns a status, as Numba has it. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#define MOST_ARGUMENTS 12
#define SUCCEEDED 0
#define RETURNED_NONE -2

typedef int64_t W;
typedef struct {
    const char *name;
    void *code;
    int arguments;
    char returns;
} Kernel;

#define KERNEL(number, name, arguments, returns) extern char kernel_##number[];
#include "kernels.h"
#undef KERNEL

#define KERNEL(number, name, arguments, returns) {name, kernel_##number, arguments, returns},
static const Kernel kernels[] = {
#include "kernels.h"
};
#undef KERNEL

#define COUNT (sizeof kernels / sizeof *kernels)

static PyMethodDef methods[COUNT];

#define A1 W
#define A2 A1, W
#define A3 A2, W
#define A4 A3, W
#define A5 A4, W
#define A6 A5, W
#define A7 A6, W
#define A8 A7, W
#define A9 A8, W
#define A10 A9, W
#define A11 A10, W
#define A12 A11, W
#define V1 a[0]
#define V2 V1, a[1]
#define V3 V2, a[2]
#define V4 V3, a[3]
#define V5 V4, a[4]
#define V6 V5, a[5]
#define V7 V6, a[6]
#define V8 V7, a[7]
#define V9 V8, a[8]
#define V10 V9, a[9]
#define V11 V10, a[10]
#define V12 V11, a[11]
#define RUN(n)                                                                                                \
    case n:                                                                                                   \
        return ((int32_t(*)(W *, void **, A##n))code)(result, &raised, V##n);

static int32_t
run(const Kernel *kernel, W *result, const W *a)
{
    void *code = kernel->code, *raised = NULL;
    switch (kernel->arguments) {
        RUN(1) RUN(2) RUN(3) RUN(4) RUN(5) RUN(6) RUN(7) RUN(8) RUN(9) RUN(10) RUN(11) RUN(12)
    }
    return ((int32_t(*)(W *, void **))code)(result, &raised);
}

static PyObject *
call(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    const Kernel *kernel = PyCapsule_GetPointer(self, NULL);
    W a[MOST_ARGUMENTS], result = 0;
    if (kernel == NULL)
        return NULL;
    if (count != kernel->arguments)
        return PyErr_Format(PyExc_TypeError, "%s takes %d arguments, not %zd", kernel->name, kernel->arguments, count);
    for (Py_ssize_t i = 0; i < count; i++) {
        a[i] = PyLong_AsLongLong(given[i]);
        if (a[i] == -1 && PyErr_Occurred())
            return NULL;
    }
    PyThreadState *thread = PyEval_SaveThread();
    int32_t status = run(kernel, &result, a);
    PyEval_RestoreThread(thread);
    if (status != SUCCEEDED && status != RETURNED_NONE)
        /* The only thing that compiled kernels raise. */
        return PyErr_Format(PyExc_ZeroDivisionError, "division by zero in the kernel %s", kernel->name);
    switch (kernel->returns) {
    case 'w':
        return PyLong_FromLongLong(result);
    case 'b':
        return PyBool_FromLong(*(int8_t *)&result);
    }
    Py_RETURN_NONE;
}

#ifdef PORTABLE
#define NEED(feature)                                                                                         \
    if (!__builtin_cpu_supports(feature)) {                                                                   \
        PyErr_SetString(PyExc_ImportError, "the kernels need a processor with " feature);                     \
        return NULL;                                                                                          \
    }
#endif

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "linked", "Compiled kernels.", -1};

PyMODINIT_FUNC
PyInit_linked(void)
{
#ifdef NEED
    __builtin_cpu_init();
    PORTABLE
#endif
    PyObject *module = PyModule_Create(&definition), *all = module ? PyDict_New() : NULL;
    if (all == NULL || PyModule_AddObject(module, "KERNELS", all) < 0)
        return NULL;
    for (size_t i = 0; i < COUNT; i++) {
        methods[i] = (PyMethodDef){kernels[i].name, (PyCFunction)(void (*)(void))call, METH_FASTCALL, NULL};
        PyObject *self = PyCapsule_New((void *)&kernels[i], NULL, NULL);
        PyObject *function = self ? PyCFunction_New(&methods[i], self) : NULL;
        if (function == NULL || PyDict_SetItemString(all, kernels[i].name, function) < 0)
            return NULL;
        Py_DECREF(self);
        Py_DECREF(function);
    }
    return module;
}
