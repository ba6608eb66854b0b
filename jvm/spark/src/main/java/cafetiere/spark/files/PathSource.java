// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.files;

import cafetiere.spark.util.JavaVersion;
import java.io.Serializable;
import java.util.Map;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.RelationProvider;
import org.apache.spark.sql.sources.TableScan;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import scala.collection.JavaConverters;

/**
 * A data source that reads what lies at a path. Spark loads every one to ask its name, whatever a
 * program reads: hence those that extend this are compiled for Java 8.
 */
@SuppressWarnings("deprecation") // JavaConverters: what Scala 2.13 has in its place, 2.12 lacks
public abstract class PathSource implements RelationProvider, DataSourceRegister {
  /** What a path holds, as the options say; opened on the driver. */
  public interface Rows extends Serializable {
    /** The columns. */
    StructType schema();

    /** The rows, which tasks read; {@code conf} tells them the file systems. */
    RDD<Row> rows(JavaSparkContext sc, SerializableConfiguration conf);
  }

  private final String name;

  /** A source with this short name. */
  protected PathSource(String name) {
    this.name = name;
  }

  @Override
  public final String shortName() {
    return name;
  }

  /** Looks at the path that the options name; {@code context} tells the file systems. */
  protected abstract Rows open(SQLContext context, Map<String, String> options);

  @Override
  public final BaseRelation createRelation(
      SQLContext context, scala.collection.immutable.Map<String, String> parameters) {
    JavaVersion.require();
    return new Opened(context, open(context, JavaConverters.mapAsJavaMap(parameters)));
  }

  private static final class Opened extends BaseRelation implements TableScan {
    private final transient SQLContext context;
    private final Rows rows;

    Opened(SQLContext context, Rows rows) {
      this.context = context;
      this.rows = rows;
    }

    @Override
    public SQLContext sqlContext() {
      return context;
    }

    @Override
    public StructType schema() {
      return rows.schema();
    }

    @Override
    public RDD<Row> buildScan() {
      JavaSparkContext sc = JavaSparkContext.fromSparkContext(context.sparkContext());
      return rows.rows(sc, new SerializableConfiguration(sc.hadoopConfiguration()));
    }
  }
}
