"""LUBM's universities have the published profile, and its rules give the right numbers on them."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import numpy as np
import pytest

from zodiacedge.graph import HyperGraph
from zodiacedge.knowledge import open_kb
from zodiacedge.language.ast import Fact, fact
from zodiacedge.language.checks import check_program
from zodiacedge.language.parser import parse_program
from zodiacedge.terms import IRI, string
from zodiacedge.workloads import lubm
from zodiacedge.workloads.lubm_university import SEED, University, universities, university
