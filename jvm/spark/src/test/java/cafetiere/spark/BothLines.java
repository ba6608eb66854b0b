// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.Tag;

/**
 * Marks tests that run on every line of Spark: those of what Spark may change, and one of each kind
 * of training. The others run on the newest line alone.
 */
@Tag("both-lines")
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.TYPE, ElementType.METHOD})
public @interface BothLines {}
