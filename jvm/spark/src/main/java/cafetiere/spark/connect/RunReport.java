// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.connect;

import cafetiere.spark.ui.RunTable;
import org.apache.spark.ml.Transformer;
import org.apache.spark.ml.param.Param;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.util.Identifiable$;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.StructType;

/**
 * The runs of this application as a table, for a client that polls while a fit goes on. The rows that it
 * is given are not looked at.
 */
public final class RunReport extends Transformer {
  private final String uid;
  private final Param<String> owner;

  /** A report with a uid of its own. */
  public RunReport() {
    this(Identifiable$.MODULE$.randomUID("RunReport"));
  }

  /** A report with the given uid. */
  public RunReport(String uid) {
    this.uid = uid;
    this.owner = new Param<>(
        this, "owner", "The uid of the estimator whose runs are told. Empty: all runs.");
    setDefault(owner, "");
  }

  @Override
  public String uid() {
    return uid;
  }

  /** The param that tells whose runs. */
  public Param<String> owner() {
    return owner;
  }

  /** Sets owner; returns this. */
  public RunReport setOwner(String value) {
    set(owner, value);
    return this;
  }

  /** A row for each run that is still kept, the newest first. */
  @Override
  public Dataset<Row> transform(Dataset<?> data) {
    return data.sparkSession().createDataFrame(
        RunTable.of(data.sparkSession().sparkContext(), getOrDefault(owner)), RunTable.SCHEMA);
  }

  @Override
  public StructType transformSchema(StructType schema) {
    return RunTable.SCHEMA;
  }

  @Override
  public RunReport copy(ParamMap extra) {
    return copyValues(new RunReport(uid), extra);
  }
}
