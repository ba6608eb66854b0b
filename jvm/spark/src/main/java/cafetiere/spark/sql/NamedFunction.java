// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sql;

import cafetiere.spark.internal.Catalyst;
import cafetiere.spark.util.Unchecked;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.StructType;
import scala.Tuple3;
import scala.runtime.AbstractFunction1;

/** {@code cafetiere_predict}, a function without a catalog. */
final class NamedFunction {
  private static final PredictFunction PREDICT = new PredictFunction();
  private static final String PREFIX = "cafetiere_";
  private static final String NAME = PREFIX + PREDICT.name();
  private static final List<String> PARAMETERS = List.of("path", "features", "output");

  private NamedFunction() {}

  @SuppressWarnings({"unchecked", "rawtypes"}) // its Seq is another class in each Scala line
  static void inject(SparkSessionExtensions session) {
    session.injectFunction(new Tuple3(new FunctionIdentifier(NAME), info(), new Builder()));
  }

  /** What DESCRIBE FUNCTION shows. */
  private static ExpressionInfo info() {
    return new ExpressionInfo(PredictFunction.class.getName(), null, NAME,
        PREFIX + PREDICT.description(), "", "", "", "", "", "", "");
  }

  private static Expression call(scala.collection.Iterable<?> given) {
    List<Expression> arguments = new ArrayList<>();
    for (var each = given.iterator(); each.hasNext();) arguments.add((Expression) each.next());
    try {
      List<Expression> ordered = ordered(arguments);
      StructType types = new StructType();
      for (Expression argument : ordered) {
        types = types.add("argument" + types.size(), argument.dataType());
      }
      return Catalyst.call((ScalarFunction<?>) PREDICT.bind(types), ordered);
    } catch (UnsupportedOperationException e) {
      throw Unchecked.rethrow(Catalyst.refusal(PREDICT, arguments, e));
    }
  }

  /** The arguments by their places, also those with names, which may come in any order. */
  private static List<Expression> ordered(List<Expression> given) {
    Map<Integer, Expression> places = new TreeMap<>();
    for (Expression argument : given) {
      boolean isNamed = argument instanceof NamedArgumentExpression;
      int place = isNamed ? place(((NamedArgumentExpression) argument).key()) : places.size();
      Expression value = isNamed ? ((NamedArgumentExpression) argument).value() : argument;
      if (places.put(place, value) != null) {
        throw new UnsupportedOperationException("predict is given " + PARAMETERS.get(place) + " twice");
      }
    }
    return List.copyOf(places.values());
  }

  private static int place(String name) {
    int place = PARAMETERS.indexOf(name.toLowerCase(Locale.ROOT));
    if (place >= 0) return place;
    throw new UnsupportedOperationException("predict has no argument " + name + ": its arguments are "
        + String.join(", ", PARAMETERS));
  }

  /** Makes the expression of a call. */
  private static final class Builder extends AbstractFunction1<Object, Expression> {
    @Override
    public Expression apply(Object arguments) {
      return call((scala.collection.Iterable<?>) arguments);
    }
  }
}
