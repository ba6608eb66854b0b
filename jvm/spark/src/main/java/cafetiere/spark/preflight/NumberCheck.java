// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.preflight;

import cafetiere.spark.feed.ColumnType;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.internal.NamedColumn;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.ml.linalg.Vector;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.StructField;

/** Looks in the first rows for numbers of which no step can be made: NaN and what is infinite. */
final class NumberCheck {
  private static final Set<ColumnType> CHECKED = Set.of(ColumnType.FLOAT, ColumnType.DOUBLE,
      ColumnType.FLOATS, ColumnType.DOUBLES, ColumnType.VECTOR);

  private NumberCheck() {}

  /** One sentence on the first such number; {@code except}: a column that is checked elsewhere. */
  static List<String> find(FeedSchema schema, Dataset<Row> table, String except) {
    List<StructField> fields = new ArrayList<>();
    for (int i = 0; i < schema.types().size(); i++) {
      StructField field = schema.table().fields()[i];
      boolean isFed = schema.inputs().stream().anyMatch(
          in -> !in.isCell() && in.column().equals(field.name()));
      if (isFed && CHECKED.contains(schema.types().get(i)) && !field.name().equals(except)) {
        fields.add(field);
      }
    }
    if (fields.isEmpty()) return List.of();
    List<Column> columns = new ArrayList<>();
    fields.forEach(field -> columns.add(NamedColumn.of(field.name())));
    if (!schema.idColumn().isEmpty()) columns.add(NamedColumn.of(schema.idColumn()).as("id of the row"));
    Look look = new Look(fields.stream().map(StructField::name).toList());
    // Lazily, row by row: nothing of the row but a sentence travels, and no shuffle is made.
    List<String> found = table.select(columns.toArray(new Column[0])).javaRDD().map(look)
        .take(LabelCheck.SAMPLE);
    for (int i = 0; i < found.size(); i++) {
      if (!found.get(i).isEmpty()) return List.of(found.get(i).replace(Look.PLACE, "row " + i));
    }
    return List.of();
  }

  /** The sentence on a row, "" for a good one. */
  private static final class Look implements Function<Row, String> {
    static final String PLACE = "\u0000";
    private static final long serialVersionUID = 1L;
    private final List<String> names;

    Look(List<String> names) {
      this.names = new ArrayList<>(names);
    }

    @Override
    public String call(Row row) {
      String where = row.size() > names.size() ? "the row with id " + row.get(names.size()) : PLACE;
      for (int i = 0; i < names.size(); i++) {
        String fault = fault(names.get(i), row.get(i));
        if (fault != null) return "column '" + names.get(i) + "' of " + where + " holds " + fault;
      }
      return "";
    }

    private static String fault(String name, Object value) {
      if (value instanceof Number number) {
        if (isGood(number)) return null;
        return number + ": correct it, or drop such rows by .filter(\"abs(`" + name + "`) < 3e38\")";
      }
      if (value instanceof Vector vector) {
        for (int i = 0; i < vector.size(); i++) {
          if (!isGood(vector.apply(i))) return element(vector.apply(i), i) + "it, or drop the row";
        }
      } else if (value instanceof scala.collection.Seq<?> array) {
        for (int i = 0; i < array.size(); i++) {
          if (array.apply(i) instanceof Number number && !isGood(number)) {
            return element(number, i) + "it, or drop such rows by .filter(\"forall(`" + name
                + "`, x -> abs(x) < 3e38)\")";
          }
        }
      }
      return null;  // nulls are told by the feed, with the row
    }

    private static String element(Number value, int place) {
      return value + " at element " + place + ": correct ";
    }

    /** As the 32 bits in which the net computes. */
    private static boolean isGood(Number value) {
      return Float.isFinite(value.floatValue());
    }
  }
}
