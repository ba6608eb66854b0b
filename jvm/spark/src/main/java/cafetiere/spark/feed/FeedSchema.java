// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.feed;

import cafetiere.spark.PreflightException;
import cafetiere.spark.internal.NamedColumn;
import cafetiere.spark.util.Json;
import cafetiere.spark.util.NearestName;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The columns of a table that a net reads, and which of its tops each one feeds.
 *
 * @param table the columns, in the order in which they are encoded
 * @param types how each of them is encoded
 * @param idColumn the column that identifies a row, "" to identify it by its bytes
 * @param inputs which column feeds which top of the data layers
 * @param resize whether encoded images are resized to what the net takes
 * @param judge solver, net and phase that tell which rows are bad, as JSON, where such rows are passed
 *     over; "" where they end the job
 * @param means the mean images that the net subtracts
 */
public record FeedSchema(
    StructType table, List<ColumnType> types, String idColumn, List<Input> inputs, boolean resize,
    String judge, MeanFiles means)
    implements Serializable {

  /**
   * A top of a data layer and a column that feeds it.
   *
   * @param isCell whether the layer, a TableData, makes numbers of what is in the column, where values
   *     may be missing; it names its columns itself
   */
  public record Input(String top, String column, boolean isCell) implements Serializable {
    /** A column of what the top takes. */
    public Input(String top, String column) {
      this(top, column, false);
    }
  }

  /**
   * Finds the columns in a table's schema. A {@link PreflightException} tells all that are missing,
   * ambiguous or cannot be fed, and what to change.
   */
  public static FeedSchema of(StructType schema, List<Input> inputs, String idColumn) {
    Set<String> names = new LinkedHashSet<>();
    inputs.forEach(input -> names.add(input.column()));
    if (!idColumn.isEmpty()) names.add(idColumn);
    Set<String> cells = cells(inputs);
    List<StructField> table = new ArrayList<>();
    List<ColumnType> types = new ArrayList<>();
    List<String> findings = new ArrayList<>();
    Map<String, List<Integer>> places = places(schema);
    for (String name : names) {
      Optional<String> unclear = unclear(name, places);
      if (unclear.isPresent()) {
        findings.add(unclear.get());
        continue;
      }
      StructField field = schema.fields()[places.get(name).get(0)];
      ColumnType type = cells.contains(name)
          ? ColumnType.ofCell(field.dataType()) : ColumnType.of(field.dataType());
      if (type == null) findings.add(unfit(field));
      table.add(field);
      types.add(type);
    }
    if (!findings.isEmpty()) throw new PreflightException(findings);
    return new FeedSchema(new StructType(table.toArray(StructField[]::new)), List.copyOf(types), idColumn,
        List.copyOf(inputs), false, "", MeanFiles.NONE);
  }

  /** Refuses another table, which is {@code used} in some way, if its columns are not of the same types. */
  public void requireTypesOf(StructType schema, String used) {
    FeedSchema other = of(schema, inputs, idColumn);
    List<String> findings = new ArrayList<>();
    for (int i = 0; i < types.size(); i++) {
      if (types.get(i) == other.types.get(i)) continue;
      findings.add("column '" + table.fieldNames()[i] + "' is of type "
          + table.fields()[i].dataType().catalogString() + " to train on, and of type "
          + other.table.fields()[i].dataType().catalogString() + " " + used
          + ": cast the one to the type of the other");
    }
    if (!findings.isEmpty()) throw new PreflightException(findings);
  }

  /** The same, with encoded images resized or refused where their size is not the net's. */
  public FeedSchema resizing(boolean wanted) {
    return new FeedSchema(table, types, idColumn, inputs, wanted, judge, means);
  }

  /** The same, with rows passed over that this net cannot take, if that is wanted. */
  public FeedSchema skippingBadRows(boolean wanted, String solver, String net, String phase) {
    if (!wanted) return this;
    ObjectNode of = Json.object().put("phase", phase);
    if (!solver.isEmpty()) of.put("solver", solver);
    if (!net.isEmpty()) of.put("net", net);
    return new FeedSchema(table, types, idColumn, inputs, resize, of.toString(), means);
  }

  /** The same with mean images. */
  public FeedSchema withMeans(MeanFiles files) {
    return new FeedSchema(table, types, idColumn, inputs, resize, judge, files);
  }

  /** Whether rows that the net cannot take are passed over. */
  public boolean skipsBadRows() {
    return !judge.isEmpty();
  }

  /** The table's columns alone, in the order in which they are encoded. */
  public Dataset<Row> select(Dataset<?> data) {
    Column[] columns = new Column[table.size()];
    String[] names = table.fieldNames();
    for (int i = 0; i < columns.length; i++) columns[i] = NamedColumn.of(names[i]);
    return data.toDF().select(columns);
  }

  /** The column whose values a top takes as they are. */
  public Optional<String> column(String top) {
    return inputs.stream().filter(input -> input.top().equals(top) && !input.isCell())
        .map(Input::column).findFirst();
  }

  /** Where the columns are in rows of another schema that contains each of them once. */
  public int[] ordinals(StructType schema) {
    Map<String, List<Integer>> places = places(schema);
    String[] names = table.fieldNames();
    int[] ordinals = new int[names.length];
    for (int i = 0; i < ordinals.length; i++) {
      unclear(names[i], places).ifPresent(finding -> {
        throw new PreflightException(List.of(finding));
      });
      ordinals[i] = places.get(names[i]).get(0);
    }
    return ordinals;
  }

  /** Position of the id among the columns, -1 if there is none. */
  int idOrdinal() {
    return idColumn.isEmpty() ? -1 : table.fieldIndex(idColumn);
  }

  /** Whether values of each column may be missing: it feeds a TableData, and is not the id. */
  boolean[] mayBeMissing() {
    Set<String> cells = cells(inputs);
    String[] names = table.fieldNames();
    boolean[] may = new boolean[names.length];
    for (int i = 0; i < may.length; i++) may[i] = cells.contains(names[i]) && !names[i].equals(idColumn);
    return may;
  }

  /** The columns that feed a TableData. */
  private static Set<String> cells(List<Input> inputs) {
    return inputs.stream().filter(Input::isCell).map(Input::column).collect(Collectors.toSet());
  }

  /** The schema as the engine's rows want it. */
  public ObjectNode toJson() {
    ObjectNode schema = Json.object();
    ArrayNode columns = schema.putArray("columns");
    for (int i = 0; i < types.size(); i++) {
      ObjectNode column = columns.addObject();
      column.put("name", table.fieldNames()[i]).put("type", types.get(i).engineName());
      if (resize && types.get(i).mayBeEncoded()) column.put("resize", true);
    }
    return schema.put("id", idColumn);
  }

  /** What the engine has to know to tell which rows are bad. */
  String checkJson() {
    ObjectNode check = (ObjectNode) Json.parse(judge);
    check.set("schema", toJson());
    check.set("inputs", inputsJson());
    return check.toString();
  }

  /** Inputs and mean images, as the engine's trainer and predictor want them. */
  public void addTo(ObjectNode options) {
    options.set("inputs", inputsJson());
    means.addTo(options);
  }

  private ArrayNode inputsJson() {
    ArrayNode array = Json.array();
    inputs.stream().filter(i -> !i.isCell())
        .forEach(i -> array.addObject().put("top", i.top()).put("column", i.column()));
    return array;
  }

  /** Where the columns of each name are; tables have thousands of columns, so all are looked up at once. */
  private static Map<String, List<Integer>> places(StructType schema) {
    String[] names = schema.fieldNames();
    Map<String, List<Integer>> places = new LinkedHashMap<>();
    for (int i = 0; i < names.length; i++) {
      places.computeIfAbsent(names[i], any -> new ArrayList<>(1)).add(i);
    }
    return places;
  }

  /** Why a name does not tell one column. */
  private static Optional<String> unclear(String name, Map<String, List<Integer>> places) {
    int count = places.getOrDefault(name, List.of()).size();
    if (count == 0) return Optional.of(missing(name, List.copyOf(places.keySet())));
    return count == 1 ? Optional.empty() : Optional.of("the table has " + count + " columns named '" + name
        + "': rename or drop all but one");
  }

  static String missing(String name, List<String> columns) {
    return "the table has no column '" + name + "'" + NearestName.among(columns, name);
  }

  private static String unfit(StructField field) {
    return "column '" + field.name() + "' is of type " + field.dataType().catalogString()
        + ", which cannot be fed to a net: cast it to a number, an array of int, bigint, float or"
        + " double, a vector, binary, string, Spark's image, or a struct of image (binary), height and"
        + " width";
  }
}
