// SPDX-License-Identifier: Apache-2.0
/** What a program does to rows before the net sees them: Preprocessor is for users to implement. */
package cafetiere.spark.preprocess;
