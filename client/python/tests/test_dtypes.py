import numpy as np
import pytest

import warpline
from warpline import dtypes
from messages import v1


def test_every_type_of_the_api_has_a_dtype():
    numbers = [name for name, number in v1.DataType.items() if number]
    assert sorted(dtypes.DTYPES) == sorted(numbers)
    for number in numbers:
        assert dtypes.data_type(dtypes.DTYPES[number]) == number


def test_bits_can_always_be_sent():
    for number, dtype in dtypes.BITS.items():
        assert dtypes.data_type(dtype) == number
        assert np.ones(3, dtype).copy()[::2].dtype == dtype


def test_integers_by_any_name():
    for kind in (np.longlong, np.int_, np.intp):
        assert dtypes.data_type(np.dtype(kind)) == "DATA_TYPE_I64"
    assert dtypes.data_type(np.dtype(">f4")) == "DATA_TYPE_F32"


def test_names_are_those_of_numpy():
    assert dtypes.result_data_type(None) == ""
    assert dtypes.result_data_type("f8") == "DATA_TYPE_F64"
    assert dtypes.result_data_type(float) == "DATA_TYPE_F64"
    assert dtypes.result_data_type("bfloat16") == "DATA_TYPE_BF16"
    assert dtypes.result_data_type(warpline.float8_e5m2) == "DATA_TYPE_F8E5M2"
    with pytest.raises(TypeError):
        dtypes.result_data_type("f16")  # NumPy's name of a long double


def test_ml_dtypes_are_used_where_they_are():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert warpline.bfloat16 == ml_dtypes.bfloat16
    assert warpline.float8_e4m3fn == ml_dtypes.float8_e4m3fn
    assert warpline.float8_e5m2 == ml_dtypes.float8_e5m2
