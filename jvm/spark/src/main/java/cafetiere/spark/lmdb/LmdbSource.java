// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.lmdb;

import cafetiere.spark.util.JavaVersion;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.JavaConverters;

/**
 * The data source "lmdb". Spark loads it to ask its name whatever format a program reads, hence it is
 * compiled for Java 8. It reads as a source of version 2 and writes as one of version 1, since those
 * of version 2 know no error where the path exists, which is what {@code write()} begins with.
 */
@SuppressWarnings("deprecation") // JavaConverters: what Scala 2.13 has in its place, 2.12 lacks
public final class LmdbSource
    implements TableProvider, DataSourceRegister, CreatableRelationProvider {
  @Override
  public String shortName() {
    return "lmdb";
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    JavaVersion.require();
    return LmdbTable.of(options).schema();
  }

  @Override
  public Table getTable(
      StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return LmdbTable.of(new CaseInsensitiveStringMap(properties));
  }

  @Override
  public BaseRelation createRelation(SQLContext context, SaveMode mode,
      scala.collection.immutable.Map<String, String> parameters, Dataset<Row> data) {
    JavaVersion.require();
    CaseInsensitiveStringMap options =
        new CaseInsensitiveStringMap(JavaConverters.mapAsJavaMap(parameters));
    LmdbTable table = LmdbTable.of(options);
    LmdbOutput.write(
        data, LmdbOutput.Kind.LMDB, table.path(), table.isByPixel(), mode);
    return new Written(context, data.schema());
  }

  /** Nothing reads it: Spark asks for it and drops it. */
  private static final class Written extends BaseRelation {
    private final SQLContext context;
    private final StructType schema;

    Written(SQLContext context, StructType schema) {
      this.context = context;
      this.schema = schema;
    }

    @Override
    public SQLContext sqlContext() {
      return context;
    }

    @Override
    public StructType schema() {
      return schema;
    }
  }
}
