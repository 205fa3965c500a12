"""Stands in for the packages that kernel libraries import beside Triton: importing a module
that holds kernels needs torch's names, compiling the kernels does not."""

import importlib.abc
import importlib.machinery
import sys
import types

PACKAGES = ("torch", "einops", "transformers", "apache_tvm_ffi")


class _Meta(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing

    def __call__(cls, *args, **kwargs):
        if len(args) == 1 and isinstance(args[0], (types.FunctionType, type)) and not kwargs:
            return args[0]  # a decorator
        return cls

    def __iter__(cls):
        return iter(())

    def __or__(cls, other):
        return cls

    __ror__ = __getitem__ = __or__

    def __lt__(cls, other):
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def __bool__(cls):
        return False

    def __int__(cls):
        return 0

    __index__ = __int__


class Nothing(metaclass=_Meta):
    """Is what any name of an absent package is: false, and itself however it is called."""


class _Module(types.ModuleType):
    __path__ = []
    __version__ = "2.9.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in PACKAGES:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        pass


def install():
    sys.meta_path.insert(0, _Finder())
