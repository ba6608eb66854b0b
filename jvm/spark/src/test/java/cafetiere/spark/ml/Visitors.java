// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import java.sql.Date;
import java.sql.Timestamp;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.spark.ml.linalg.SQLDataTypes;
import org.apache.spark.ml.linalg.Vectors;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.$colon$colon;
import scala.collection.immutable.List$;

/**
 * A table that is drawn: numbers, texts, dates and gaps. Whether somebody buys follows from the age
 * or, where it is not told, from the city; one in ten does the opposite, so that nobody can be right more
 * often than nine times of ten. What is paid is a sum of what the columns say.
 */
final class Visitors {
  static final int CITIES = 20;
  static final double BEST = 0.9;
  static final StructType SCHEMA = new StructType()
      .add("id", DataTypes.LongType)
      .add("age", DataTypes.DoubleType)
      .add("city", DataTypes.StringType)
      .add("visits", DataTypes.IntegerType)
      .add("since", DataTypes.DateType)
      .add("seen", DataTypes.TimestampType)
      .add("taste", SQLDataTypes.VectorType())
      .add("answer", DataTypes.StringType)
      .add("buys", DataTypes.DoubleType)
      .add("paid", DataTypes.DoubleType);

  private Visitors() {}

  /** The rows from number {@code first} to {@code last}, exclusively. */
  static Dataset<Row> table(SparkSession spark, int first, int last) {
    List<Row> rows = new ArrayList<>();
    for (int id = first; id < last; id++) rows.add(row(id));
    return spark.createDataFrame(rows, SCHEMA);
  }

  /** What a grid of params takes. */
  @SafeVarargs
  static <T> scala.collection.Iterable<T> list(T... values) {
    scala.collection.immutable.List<T> list = List$.MODULE$.empty();
    for (int i = values.length; i-- > 0;) list = new $colon$colon<>(values[i], list);
    return list;
  }

  private static Row row(int id) {
    Random random = new Random(31L * id + 7);
    random.nextInt();
    boolean isTold = random.nextInt(4) > 0;
    double age = 20 + random.nextInt(60);
    int city = random.nextInt(CITIES);
    int visits = random.nextInt(10);
    boolean buys = (isTold ? age > 50 : city % 2 == 0) ^ random.nextInt(10) == 0;
    double taste = random.nextGaussian();
    double paid = 100 + 10 * visits + 20 * taste + (city % 2 == 0 ? 30 : 0);
    long day = 15_000 + random.nextInt(2_000);
    return RowFactory.create((long) id, isTold ? age : null, "city " + city, visits,
        Date.valueOf(LocalDate.ofEpochDay(day)), new Timestamp(86_400_000L * day + id),
        Vectors.dense(taste, 1), buys ? "yes" : "no", buys ? 1.0 : 0.0, paid);
  }
}
