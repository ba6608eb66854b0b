// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sql;

import cafetiere.spark.internal.Catalyst;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.StructType;
import scala.Tuple3;
import scala.runtime.AbstractFunction1;

/** {@code cafetiere_predict}, a function without a catalog. */
final class NamedFunction {
  private static final String NAME = "cafetiere_predict";

  private NamedFunction() {}

  @SuppressWarnings({"unchecked", "rawtypes"}) // its Seq is another class in each Scala line
  static void inject(SparkSessionExtensions session) {
    session.injectFunction(new Tuple3(new FunctionIdentifier(NAME),
        new ExpressionInfo(PredictFunction.class.getName(), NAME), new Builder()));
  }

  private static Expression call(scala.collection.Iterable<?> given) {
    List<Expression> arguments = new ArrayList<>();
    StructType types = new StructType();
    for (var each = given.iterator(); each.hasNext();) {
      Expression argument = (Expression) each.next();
      arguments.add(argument);
      types = types.add("argument" + arguments.size(), argument.dataType());
    }
    return Catalyst.call((ScalarFunction<?>) new PredictFunction().bind(types), arguments);
  }

  /** Makes the expression of a call. */
  private static final class Builder extends AbstractFunction1<Object, Expression> {
    @Override
    public Expression apply(Object arguments) {
      return call((scala.collection.Iterable<?>) arguments);
    }
  }
}
