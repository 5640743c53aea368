"""Sessions of datafusion-python: `anonymize('table', 'policy')`."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import CENSUS, rows_of
from datafusion import SessionContext, SessionExtensionComponents, udf

import throng
from throng.datafusion import AnonymizeExtension


@pytest.fixture
def session(policy, census):
    """A session with the bundle, its function and a table."""
    extension = AnonymizeExtension({"census-policy": policy})
    ctx = SessionContext().with_extensions(extension)
    extension.register_function(ctx)
    ctx.from_arrow(census, name="people")
    return ctx


def test_a_query_gives_the_rows_of_anonymize(session, census, policy):
    found = session.sql("SELECT * FROM anonymize('people', 'census-policy')").to_arrow_table()
    assert rows_of(found) == rows_of(throng.anonymize(census, policy).to_arrow())


def test_a_registered_file_is_read_by_its_session(session, census, policy):
    session.register_parquet("files", str(CENSUS))
    found = session.sql("SELECT * FROM anonymize('files', 'census-policy')").to_arrow_table()
    assert rows_of(found) == rows_of(throng.anonymize(census, policy).to_arrow())


def test_filters_stay_above_the_groups(session, census, policy):
    whole = throng.anonymize(census, policy).to_arrow()
    wanted = [row for row in whole.to_pylist() if row["diagnosis"] == "asthma"]
    query = "SELECT * FROM anonymize('people', 'census-policy') WHERE diagnosis = 'asthma'"
    assert rows_of(session.sql(query).to_arrow_table()) == sorted(repr(list(row.values())) for row in wanted)
    limited = session.sql("SELECT sex FROM anonymize('people', 'census-policy') LIMIT 7").to_arrow_table()
    assert limited.num_rows == 7
    sizes = session.sql(
        "SELECT min(n) AS n FROM (SELECT count(*) AS n FROM anonymize('people', 'census-policy')"
        " GROUP BY age, sex, region, postcode, education, occupation, marital_status, arrival)"
    )
    assert sizes.to_pydict()["n"][0] >= 10


def test_explain_shows_one_node_and_reads_nothing(session):
    plan = session.sql("EXPLAIN SELECT * FROM anonymize('people', 'census-policy')").to_pydict()
    text = "\n".join(plan["plan"])
    assert "AnonymizeExec: k=10" in text and "number_of_children=0" in text
    assert "RepartitionExec: partitioning=Hash" not in text


def test_what_is_wrong_is_an_error_of_the_query(session):
    for query, wanted in [
        ("SELECT * FROM anonymize('nobody', 'census-policy')", "no table"),
        ("SELECT * FROM anonymize('people', 'nothing')", "no policy is registered as `nothing`"),
        ("SELECT * FROM anonymize('people')", "anonymize takes the name of a table"),
        ("SELECT * FROM anonymize(1, 2)", "anonymize takes the name of a table"),
    ]:
        with pytest.raises(Exception, match=wanted):
            session.sql(query).collect()


def test_it_works_beside_another_extension(policy, census):
    class Foreign:
        """Plans every query across the interface, as another library's planner does."""

        def __datafusion_session_components__(self, ctx):
            return SessionExtensionComponents()

        def __datafusion_session_planner__(self, ctx, fallback):
            return fallback

    extension = AnonymizeExtension({"census-policy": policy})
    for bundles in ((extension, Foreign()), (Foreign(), extension)):
        ctx = SessionContext().with_extensions(*bundles)
        extension.register_function(ctx)
        ctx.register_parquet("people", str(CENSUS))
        shout = udf(lambda words: pa.array([str(word).upper() for word in words]), [pa.string()], pa.string(), "stable", "shout")
        ctx.register_udf(shout)
        assert "throng.anonymized-table.v1" in ctx.logical_extension_codec_ids()
        found = ctx.sql("SELECT count(*) AS n FROM anonymize('people', 'census-policy')").to_pydict()
        assert found["n"][0] > 2900


def test_a_session_key_lasts_as_long_as_the_bundle(census):
    policy = throng.Policy(k=10, quasi=["age", "postcode"], sensitive=["diagnosis"], others="identifier")
    extension = AnonymizeExtension()
    extension.add_policy("free", policy)
    ctx = SessionContext().with_extensions(extension)
    extension.register_function(ctx)
    ctx.from_arrow(census, name="people")
    query = "SELECT * FROM anonymize('people', 'free')"
    assert rows_of(ctx.sql(query).to_arrow_table()) == rows_of(ctx.sql(query).to_arrow_table())
    assert pq.read_metadata(CENSUS).num_rows == ctx.sql(query).count()
