// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.pixels;

import cafetiere.spark.util.JavaVersion;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.RelationProvider;

/**
 * The data source "pixels": DeepSpark's text lines, CIFAR's binary records and DeepSpark's
 * SequenceFiles. Spark loads it to ask its name whatever format a program reads, hence it is compiled
 * for Java 8.
 */
public final class PixelSource implements RelationProvider, DataSourceRegister {
  @Override
  public String shortName() {
    return "pixels";
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context, scala.collection.immutable.Map<String, String> parameters) {
    JavaVersion.require();
    return PixelTable.of(context, parameters);
  }
}
