// SPDX-License-Identifier: Apache-2.0
/** What is counted of tables before nets are trained on them. */
package cafetiere.core.table;
