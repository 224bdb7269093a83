"""The folder of a trained model in place of a run."""

import pytest

from steadyeye.core.errors import UsageError
from steadyeye.predictions.json_record import write_record
from steadyeye.predictions.read import cells


def test_a_trained_model_is_no_damaged_run(tmp_path):
    write_record(tmp_path / "run.json", {"kind": "finetune", "job": {}})
    with pytest.raises(UsageError, match="holds a trained model and no run; evaluate it with"):
        cells(tmp_path)
    write_record(tmp_path / "run.json", {"job": {}})
    with pytest.raises(UsageError, match=r"is damaged: .* without cells; delete it"):
        cells(tmp_path)
