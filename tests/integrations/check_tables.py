"""pandas, polars and DuckDB: accuracy and pm-k from a run's rows are those of the run.

Run by `make integrations` over the packages of the tests.
"""

import duckdb
import polars

import steadyeye as se
from steadyeye.metrics.pm_k import pm_k
from steadyeye.predictions.sample_rows import build_table
from steadyeye.testing import example_predictions, example_source, tell_example_classes


def main():
    """Compares, and fails where a number differs."""
    run = se.evaluate(tell_example_classes, example_source())
    assert polars.from_arrow(run.rows())["right"].mean() == run.accuracy().value
    hard = build_table(example_predictions(margin=0.5))
    frame = polars.from_arrow(hard)
    steady = frame.group_by("set").agg(polars.col("right").all())["right"].mean()
    expected = pm_k(example_predictions(margin=0.5), 2).value
    assert steady == expected, (steady, expected)
    steady_share = duckdb.sql(
        'select avg(s::int) from (select bool_and("right") s from hard group by set)'
    )
    assert steady_share.fetchall() == [(expected,)]
    pandas = hard.to_pandas()
    assert pandas.groupby("set")["right"].all().mean() == expected
    print(
        f"pm-2 {expected:.1%} by pandas, polars {polars.__version__}, DuckDB {duckdb.__version__}"
    )


if __name__ == "__main__":
    main()
