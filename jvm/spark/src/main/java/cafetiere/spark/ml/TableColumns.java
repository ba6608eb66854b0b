// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import cafetiere.spark.PreflightException;
import cafetiere.spark.feed.ColumnType;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.internal.NamedColumn;
import cafetiere.spark.util.Json;
import cafetiere.spark.util.NearestName;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.spark.ml.linalg.SQLDataTypes;
import org.apache.spark.ml.linalg.Vector;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The columns that are learned from, the labels and weights last, and what each of them holds.
 *
 * @param task what is learned
 * @param fields those columns of the table
 * @param kinds of each, as cft_table_create names them
 * @param imageSize height and width that images get, or none
 * @param schema how their rows are encoded
 */
record TableColumns(
    Task task, List<StructField> fields, List<String> kinds, int[] imageSize, FeedSchema schema) {
  private static final String NUMBER = TableTraining.NUMBER;
  private static final String CATEGORY = "CATEGORY";
  private static final String WEIGHT = "WEIGHT";
  private static final String IMAGE = "IMAGE";
  private static final String DATE = "DATE";
  private static final String TIMESTAMP = "TIMESTAMP";
  /** A column by which PySpark's CrossValidator and TrainValidationSplit tell their parts apart. */
  private static final Pattern PART = Pattern.compile("\\w+_[0-9a-f]{12}_rand");

  /**
   * What is to be learned.
   *
   * @param labels columns
   * @param kind of each, CLASS or NUMBER
   * @param options of cft_table_net, which say how
   */
  record Task(List<String> labels, String kind, ObjectNode options) {}

  /** Those that the params name; a {@link PreflightException} tells all that cannot be used. */
  static TableColumns of(TableParams<?> params, Task task, StructType schema) {
    List<String> findings = new ArrayList<>();
    Set<String> features = new LinkedHashSet<>(features(params, task, schema));
    Map<String, String> targets = new LinkedHashMap<>();
    for (String label : task.labels()) {
      if (targets.put(label, "label") != null) findings.add("column '" + label + "' is a label twice");
    }
    String weight = params.getWeightCol();
    if (!weight.isEmpty() && targets.put(weight, "weight") != null) {
      findings.add("column '" + weight + "' is a label, and weightCol: set another weightCol");
    }
    targets.forEach((name, role) -> {
      if (features.remove(name)) {
        findings.add("column '" + name + "' is the " + role + ", and among the columns to learn from:"
            + " take it out of featuresCols");
      }
    });
    if (features.contains("")) {
      findings.add("a column to learn from has no name: give it one, or set featuresCols without it");
    }
    if (features.isEmpty()) findings.add("there is no column to learn from: set featuresCols");
    Set<String> categories = Set.of(params.getCategoricalCols());
    for (String name : categories) {
      if (!features.contains(name)) {
        findings.add("categoricalCols names '" + name + "', which is no column to learn from"
            + hint(name, features));
      }
    }
    Set<String> names = new LinkedHashSet<>(features);
    names.addAll(targets.keySet());
    Map<String, StructField> present = new HashMap<>();
    for (StructField field : schema.fields()) present.putIfAbsent(field.name(), field);
    List<StructField> fields = new ArrayList<>();
    List<String> kinds = new ArrayList<>();
    List<FeedSchema.Input> cells = new ArrayList<>();
    for (String name : names) {
      cells.add(new FeedSchema.Input("table", name, true));
      StructField field = present.get(name);
      if (field == null) continue;  // FeedSchema tells
      fields.add(field);
      String role = targets.getOrDefault(name, "feature");
      kinds.add(switch (role) {
        case "label" -> labelKind(field, task, findings);
        case "weight" -> weightKind(field, findings);
        default -> featureKind(field, categories.contains(name), findings);
      });
    }
    int[] size = params.getImageSize();
    if (size.length > 0 && (size.length != 2 || size[0] < 1 || size[1] < 1)) {
      findings.add("imageSize is " + Arrays.toString(size) + ": give height and width, such as 32, 32");
    } else if (size.length > 0 && !kinds.contains(IMAGE)) {
      findings.add("imageSize is for columns of images, and there is none to learn from: leave it out");
    }
    if (!findings.isEmpty()) throw new PreflightException(findings);
    return new TableColumns(task, List.copyOf(fields), List.copyOf(kinds), size,
        FeedSchema.of(schema, cells, params.getIdCol()));
  }

  /** Whether a row has more than one number to learn. */
  boolean hasSeveralNumbers() {
    return task.labels().size() > 1 || fields.stream()
        .anyMatch(field -> task.labels().contains(field.name()) && isSeveral(field.dataType()));
  }

  /** The options of cafetiere.core.table.TableStatistics for a table. */
  String options(Dataset<Row> table) {
    ObjectNode options = Json.object();
    options.set("schema", schema.toJson());
    ArrayNode columns = options.putArray("columns");
    for (int i = 0; i < fields.size(); i++) {
      ObjectNode column = columns.addObject();
      column.put("name", fields.get(i).name()).put("kind", kinds.get(i));
      if (kinds.get(i).equals(IMAGE) && imageSize.length > 0) {
        column.putArray("resize").add(imageSize[0]).add(imageSize[1]);
      }
      if (!isSeveral(fields.get(i).dataType())) continue;
      boolean anyNumber = kinds.get(i).equals(CATEGORY);
      column.put("size", anyNumber ? 0 : size(table, fields.get(i).name()));
    }
    return options.toString();
  }

  private static List<String> features(TableParams<?> params, Task task, StructType schema) {
    if (params.getFeaturesCols().length > 0) return List.of(params.getFeaturesCols());
    List<String> all = new ArrayList<>(List.of(schema.fieldNames()));
    String one = params.getFeaturesCol();
    if (all.contains(one) || params.isSet(params.featuresCol())) return List.of(one);
    all.removeAll(task.labels());
    Stream.of(params.getLabelCol(), params.getIdCol(), params.getWeightCol(),
        params.getValidationIndicatorCol(), params.getGroupCol())
        .filter(name -> !name.isEmpty()).forEach(all::remove);
    all.removeIf(PART.asMatchPredicate());
    return all;
  }

  private static String kind(DataType type, boolean isCategory) {
    if (type.equals(DataTypes.DateType)) return DATE;
    if (type.equals(DataTypes.TimestampType)) return TIMESTAMP;
    if (type.equals(DataTypes.TimestampNTZType)) return TIMESTAMP;
    if (ColumnType.isImage(type)) return IMAGE;
    DataType one = type instanceof ArrayType array ? array.elementType() : type;
    return isCategory || one.equals(DataTypes.StringType) ? CATEGORY : NUMBER;
  }

  private static String featureKind(StructField field, boolean isCategory, List<String> findings) {
    if (!isLearned(field.dataType())) {
      findings.add("column '" + field.name() + "' is of type " + field.dataType().catalogString()
          + ", of which nothing can be learned: leave it out of featuresCols, or cast it to a number, a"
          + " date or string");
    }
    if (isCategory && List.of(DATE, TIMESTAMP, IMAGE).contains(kind(field.dataType(), true))) {
      findings.add("categoricalCols names '" + field.name() + "', which is of type "
          + field.dataType().catalogString() + ": cast it to text, or take it out of categoricalCols");
    }
    return kind(field.dataType(), isCategory);
  }

  private static String weightKind(StructField field, List<String> findings) {
    if (!isNumber(field.dataType())) {
      findings.add("the weight '" + field.name() + "' is of type "
          + field.dataType().catalogString() + ": it must be a number; cast it");
    }
    return WEIGHT;
  }

  private static String labelKind(StructField field, Task task, List<String> findings) {
    DataType type = field.dataType();
    boolean areNumbers = isNumber(type) || type.equals(SQLDataTypes.VectorType())
        || type instanceof ArrayType array && isNumber(array.elementType());
    boolean learnsNumbers = task.kind().equals(NUMBER);
    if (!areNumbers && (learnsNumbers || !type.equals(DataTypes.StringType))) {
      findings.add("the label '" + field.name() + "' is of type " + type.catalogString() + ": "
          + (learnsNumbers ? "a regressor learns numbers; cast it, or use CaffeClassifier"
              : "a classifier learns classes that are text or whole numbers, or arrays of 0 and 1; cast"
                  + " it"));
    }
    return isSeveral(type) && !learnsNumbers ? TableTraining.FLAGS : task.kind();
  }

  private static boolean isNumber(DataType type) {
    return type instanceof NumericType || type.equals(DataTypes.BooleanType);
  }

  private static boolean isLearned(DataType type) {
    DataType one = type instanceof ArrayType array ? array.elementType() : type;
    return one instanceof NumericType || type.equals(DataTypes.BooleanType)
        || type.equals(DataTypes.StringType) || !kind(type, false).equals(NUMBER)
        || type.equals(SQLDataTypes.VectorType());
  }

  private static boolean isSeveral(DataType type) {
    return type instanceof ArrayType || type.equals(SQLDataTypes.VectorType());
  }

  /** Numbers in a cell, as in the first one that is there. */
  private static int size(Dataset<Row> table, String name) {
    Column column = NamedColumn.of(name);
    List<Row> first = table.select(column).filter(column.isNotNull()).limit(1).collectAsList();
    if (first.isEmpty()) {
      throw new PreflightException(List.of("column '" + name + "' has no value in any row: leave it"
          + " out of featuresCols"));
    }
    Object cell = first.get(0).get(0);
    return Math.max(1, cell instanceof Vector vector ? vector.size() : first.get(0).getList(0).size());
  }

  private static String hint(String name, Set<String> names) {
    return NearestName.of(name, names).map(nearest -> ": did you mean '" + nearest + "'?").orElse("");
  }
}
