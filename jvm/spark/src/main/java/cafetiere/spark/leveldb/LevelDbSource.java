// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.leveldb;

import cafetiere.spark.files.PathSource;
import cafetiere.spark.util.JavaVersion;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import scala.collection.JavaConverters;

/** The data source "leveldb": Caffe's other kind of database, read and written. */
@SuppressWarnings("deprecation") // JavaConverters: what Scala 2.13 has in its place, 2.12 lacks
public final class LevelDbSource extends PathSource implements CreatableRelationProvider {
  public LevelDbSource() {
    super("leveldb");
  }

  @Override
  protected Rows open(SQLContext context, Map<String, String> options) {
    return LevelDbRows.open(context, options);
  }

  @Override
  public BaseRelation createRelation(SQLContext context, SaveMode mode,
      scala.collection.immutable.Map<String, String> parameters, Dataset<Row> data) {
    JavaVersion.require();
    LevelDbRows.write(data, JavaConverters.mapAsJavaMap(parameters), mode);
    return createRelation(context, parameters);
  }
}
