// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.internal;

import java.io.Serializable;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.DeserializeToObject;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapPartitions;
import org.apache.spark.sql.catalyst.plans.logical.SerializeFromObject;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.AbstractIterator;
import scala.runtime.AbstractFunction1;

/**
 * Maps the partitions of a table in Spark's binary format, where {@code Dataset.mapPartitions} makes an
 * object of each number. It is the plan that this makes too, of the same nodes: lazy, in streams as well,
 * and of the columns that it adds only those are written that are read later. Between its nodes lie
 * internal rows in place of a class's objects.
 */
public final class BinaryRows {
  private BinaryRows() {}

  /**
   * Makes rows of a partition's rows. The next row of the given ones may lie in the memory of the one
   * before it; a row that is given back is read before the next one is asked for.
   */
  public interface Mapping extends Serializable {
    /** The rows of the result's schema. */
    Iterator<InternalRow> map(Iterator<InternalRow> rows);
  }

  /** The table of a mapping's rows, which have the schema {@code result}. */
  public static Dataset<Row> map(Dataset<?> data, StructType result, Mapping mapping) {
    try {
      LogicalPlan plan = SparkInternals.execution(data).analyzed();
      List<Attribute> columns = new ArrayList<>();
      for (var column = output(plan).iterator(); column.hasNext();) {
        columns.add((Attribute) column.next());
      }
      Attribute given = attribute(ObjectType.apply(InternalRow.class));
      Attribute made = attribute(result);
      Expression row = Catalyst.call(new WholeRow(data.schema()), columns);
      LogicalPlan mapped = new MapPartitions(
          new Mapped(mapping), made, new DeserializeToObject(row, given, plan));
      return table(data, (LogicalPlan) Catalyst.make(SerializeFromObject.class, fields(result), mapped));
    } catch (InvocationTargetException e) {
      throw e.getCause() instanceof RuntimeException cause
          ? cause : new IllegalStateException("cannot plan the table: " + e.getCause(), e.getCause());
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("this version of Spark plans tables in another way (" + e
          + "): use Spark 3.5 or 4.1 without Spark Connect", e);
    }
  }

  /** Of the one object that is given, by place: without generated code Spark resolves no name here. */
  private static Object fields(StructType result) throws ReflectiveOperationException {
    BoundReference row = new BoundReference(0, result, false);
    List<NamedExpression> fields = new ArrayList<>();
    for (int i = 0; i < result.size(); i++) {
      StructField field = result.fields()[i];
      fields.add((NamedExpression) Catalyst.make(Alias.class,
          new GetStructField(row, i, Option.apply(field.name())), field.name(),
          NamedExpression.newExprId(), Catalyst.list(List.of()), Option.apply(field.metadata()),
          Catalyst.list(List.of())));
    }
    return Catalyst.list(fields);
  }

  private static Attribute attribute(DataType type) throws ReflectiveOperationException {
    return (Attribute) Catalyst.make(AttributeReference.class,
        "row", type, false, Metadata.empty(), NamedExpression.newExprId(), Catalyst.list(List.of()));
  }

  /** {@code Dataset.ofRows}, whose class and types moved in Spark 4. */
  @SuppressWarnings("unchecked")
  private static Dataset<Row> table(Dataset<?> data, LogicalPlan plan)
      throws ReflectiveOperationException {
    Method ofRows = Stream.of(data.getClass().getMethods())
        .filter(method -> method.getName().equals("ofRows") && method.getParameterCount() == 2
            && method.getParameterTypes()[1] == LogicalPlan.class)
        .findFirst().orElseThrow(() -> new NoSuchMethodException("Dataset.ofRows"));
    return (Dataset<Row>) ofRows.invoke(null, data.sparkSession(), plan);
  }

  private static scala.collection.Iterable<?> output(LogicalPlan plan)
      throws ReflectiveOperationException {
    return (scala.collection.Iterable<?>) LogicalPlan.class.getMethod("output").invoke(plan);
  }

  /** A row of all columns, as an object. */
  private static final class WholeRow implements ScalarFunction<InternalRow> {
    private static final long serialVersionUID = 1L;
    private final StructType schema;

    WholeRow(StructType schema) {
      this.schema = schema;
    }

    @Override
    public DataType[] inputTypes() {
      return Stream.of(schema.fields()).map(StructField::dataType).toArray(DataType[]::new);
    }

    @Override
    public DataType resultType() {
      return ObjectType.apply(InternalRow.class);
    }

    @Override
    public boolean isResultNullable() {
      return false;
    }

    @Override
    public String name() {
      return "row";
    }

    @Override
    public InternalRow produceResult(InternalRow row) {
      return row;
    }
  }

  /** A mapping as the function of Spark's node. */
  private static final class Mapped
      extends AbstractFunction1<scala.collection.Iterator<Object>, scala.collection.Iterator<Object>>
      implements Serializable {
    private static final long serialVersionUID = 1L;
    private final Mapping mapping;

    Mapped(Mapping mapping) {
      this.mapping = mapping;
    }

    @Override
    public scala.collection.Iterator<Object> apply(scala.collection.Iterator<Object> rows) {
      Iterator<InternalRow> made = mapping.map(new Iterator<InternalRow>() {
        @Override
        public boolean hasNext() {
          return rows.hasNext();
        }

        @Override
        public InternalRow next() {
          return (InternalRow) rows.next();
        }
      });
      return new AbstractIterator<Object>() {
        @Override
        public boolean hasNext() {
          return made.hasNext();
        }

        @Override
        public Object next() {
          return made.next();
        }
      };
    }
  }
}
