// SPDX-License-Identifier: Apache-2.0
/**
 * What a client of Spark Connect asks for. Of a class that Spark does not know it may call fit and transform
 * alone, so what is told of runs and models is told by tables that transform makes.
 */
package cafetiere.spark.connect;
