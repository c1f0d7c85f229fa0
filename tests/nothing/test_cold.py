"""What benchmarks/cold.py says of finished runs."""

from benchmarks import cold


def test_a_line_for_each_start_and_vlen():
    found = {"none": [{128: 1.0, 256: 2.0}, {128: 1.5, 256: 2.0}, {128: 1.2, 256: 4.0}], "auto": [{128: 2.0, 256: 1.0}]}
    assert cold.told("p", found) == [
        "p VLEN 128, none: 1.200 in median of 3 seeds, lowest 1.000; 60.0% of the best of all these runs",
        "p VLEN 128, auto: 2.000 in median of 1 seeds, lowest 2.000; 100.0% of the best of all these runs",
        "p VLEN 256, none: 2.000 in median of 3 seeds, lowest 2.000; 50.0% of the best of all these runs",
        "p VLEN 256, auto: 1.000 in median of 1 seeds, lowest 1.000; 25.0% of the best of all these runs",
    ]
