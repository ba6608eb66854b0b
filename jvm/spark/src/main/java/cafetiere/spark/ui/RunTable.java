// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ui;

import com.fasterxml.jackson.databind.JsonNode;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** What the store of Spark's UI knows of runs, as rows. */
public final class RunTable {
  /** Figures are null before the first progress; progress, test and summary are JSON, or null. */
  public static final StructType SCHEMA = new StructType()
      .add("run", DataTypes.StringType, false)
      .add("owner", DataTypes.StringType, false)
      .add("title", DataTypes.StringType, false)
      .add("state", DataTypes.StringType, false)
      .add("began", DataTypes.TimestampType, false)
      .add("heard", DataTypes.TimestampType, false)
      .add("step", DataTypes.LongType)
      .add("steps", DataTypes.LongType)
      .add("epoch", DataTypes.DoubleType)
      .add("loss", DataTypes.DoubleType)
      .add("rowsPerSecond", DataTypes.DoubleType)
      .add("secondsLeft", DataTypes.DoubleType)
      .add("progress", DataTypes.StringType)
      .add("test", DataTypes.StringType)
      .add("summary", DataTypes.StringType)
      .add("failure", DataTypes.StringType);

  private RunTable() {}

  /** The runs of an estimator's uid, or with "" of all, the newest first. */
  public static List<Row> of(SparkContext sc, String owner) {
    List<Row> rows = new ArrayList<>();
    for (RunRow run : RunStore.runs(sc.statusStore().store())) {
      if (owner.isEmpty() || owner.equals(run.owner)) rows.add(row(run));
    }
    return rows;
  }

  private static Row row(RunRow run) {
    JsonNode last = run.lastProgress();
    return RowFactory.create(run.run, run.owner, run.title, run.state, new Timestamp(run.started),
        new Timestamp(run.heard), whole(last.path("step")), whole(last.path("max_iter")),
        number(last.path("epoch")), number(last.path("loss")), number(last.path("rows_per_s")),
        run.secondsLeft(), known(run.progress), known(run.test), known(run.result),
        known(run.failure));
  }

  private static Long whole(JsonNode value) {
    return value.isNumber() ? value.asLong() : null;
  }

  private static Double number(JsonNode value) {
    return value.isNumber() ? value.asDouble() : null;
  }

  private static String known(String text) {
    return text.isEmpty() ? null : text;
  }
}
